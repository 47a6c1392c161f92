"""What all commands and events have in common: frozen, closed, flat, and named in the past or imperative."""

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """The body of one record. Its class name is its type on the wire.

    Bodies are flat: nested JSON travels as canonical JSON text (RFC 8785), times as milliseconds since the
    epoch. Whatever every record has (id, key, time, term, tenant) is in the record's headers, not here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
