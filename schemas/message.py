"""What all commands and events have in common: frozen, closed, flat, and named in the past or imperative."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# Avro's long. With it, and no text that UTF-8 cannot carry, every message that exists can be written.
Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class Message(BaseModel):
    """The body of one record. Its class name is its type on the wire.

    Bodies are flat: nested JSON travels as canonical JSON text (RFC 8785), times as milliseconds since the
    epoch. Whatever every record has (id, key, time, term, tenant) is in the record's headers, not here.
    """

    # A constraint on texts, even an empty one, is what makes pydantic refuse lone surrogates.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, str_min_length=0)
