"""The size of an event as a record: the size of a decision is limited before anything is sent."""

from typing import Any

from schemas.message import Message
from services.domain.context import Context
from services.domain.refusals import Events
from services.domain.state import Execution

# The frame and headers of a record, a trace context among them, without key (twice), tenant and command id; then a
# maximum for any short value.
RECORD_BYTES = 640
FIELD_BYTES = 12


def events_bytes(state: Execution, ctx: Context, events: Events) -> int:
    """An upper bound of the events' size in a Kafka batch (`OutRecord.size_bytes`)."""
    key_bytes = len(state.tenant) + len(state.project) + len(state.execution_id) + 2
    each = RECORD_BYTES + 2 * key_bytes + len(state.tenant) + len(ctx.command_id)
    return sum(each + _body_bytes(event) for event in events)


def text_bytes(text: str) -> int:
    """A text's length in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _body_bytes(event: Message) -> int:
    return sum(map(_value_bytes, event.__dict__.values()))


def _value_bytes(value: Any) -> int:
    if isinstance(value, str):
        return FIELD_BYTES + text_bytes(value)
    if isinstance(value, tuple):
        return FIELD_BYTES + sum(map(_value_bytes, value))
    return FIELD_BYTES
