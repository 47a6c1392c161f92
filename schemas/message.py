"""The base of all commands and events: frozen, closed, flat, and named in the imperative or the past tense."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# Avro's long. With this bound, and only text that UTF-8 can encode, every message can be serialised.
Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class Message(BaseModel):
    """The body of one record. Its class name is its type on the wire.

    Bodies are flat: nested JSON travels as canonical JSON text (RFC 8785), times as milliseconds since the
    epoch. Fields that every record has (id, key, time, term, tenant) are in the record's headers, not here.
    """

    # Any constraint on texts, even an empty one, makes pydantic refuse lone surrogates.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, str_min_length=0)
