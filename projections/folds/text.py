"""An event's body as JSON text, and the one character that no database column accepts."""

from typing import Any

import msgspec

from schemas.record import Event

_ENCODE = msgspec.json.Encoder().encode
# The beginning of an answer's detail if the deciders gave up on its command.
GIVEN_UP = "given up after"
NUL, SHOWN_AS = "\x00", "�"


def body_text(event: Event) -> tuple[Event, str]:
    """The event and its body as JSON.

    PostgreSQL cannot store U+0000 in text, and the two databases must agree: it becomes U+FFFD in both. Nested
    canonical JSON, over which digests are computed, contains it escaped and is not changed.
    """
    text = _ENCODE(event.body.__dict__).decode()
    if "\\u0000" not in text:
        return event, text
    body = event.body.model_copy(
        update={name: _without_nul(value) for name, value in event.body.__dict__.items()}
    )
    return event._replace(body=body), _ENCODE(body.__dict__).decode()


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(NUL, SHOWN_AS)
    if isinstance(value, tuple):
        return tuple(map(_without_nul, value))
    return value
