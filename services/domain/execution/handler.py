"""What decides one kind of command. Each module has a table of its own, and `execution` decides by all of them."""

from collections.abc import Callable, Mapping
from typing import Any

from schemas.message import Message
from services.domain.context import Context
from services.domain.refusals import Events
from services.domain.state import Execution

Handler = Callable[[Execution, Any, Context], Events]
Handlers = Mapping[type[Message], Handler]
