"""The function that decides one kind of command. Each module has its own table; `execution` joins all of them."""

from collections.abc import Callable, Mapping
from typing import Any

from schemas.message import Message
from services.domain.context import Context
from services.domain.refusals import Events
from services.domain.state import Execution

Handler = Callable[[Execution, Any, Context], Events]
Handlers = Mapping[type[Message], Handler]
