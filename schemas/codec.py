"""Bytes to messages and back: Avro in Confluent framing (magic byte 0, schema id, body)."""

import io
import struct
from functools import cache
from typing import Any

import fastavro
from pydantic import ValidationError

from schemas import registry
from schemas.commands import COMMANDS
from schemas.events import EVENTS
from schemas.message import Message
from schemas.record import UnreadableRecord

_FRAME = struct.Struct(">bI")
MAGIC = 0

MODELS: dict[str, type[Message]] = {
    **{f"placet.commands.{model.__name__}": model for model in COMMANDS},
    **{f"placet.events.{model.__name__}": model for model in EVENTS},
}
SUBJECTS: dict[type[Message], str] = {model: subject for subject, model in MODELS.items()}


def encode(message: Message) -> bytes:
    """The framed bytes of a message, by the newest schema of its type."""
    frame, schema = _writer(type(message))
    buffer = io.BytesIO()
    buffer.write(frame)
    fastavro.schemaless_writer(buffer, schema, message.__dict__)
    return buffer.getvalue()


def decode(value: bytes) -> Message:
    """The message in framed bytes, whichever shipped version wrote them.

    Raises:
        UnreadableRecord: foreign bytes, an unknown schema id, or a body that is not of its schema.
    """
    if len(value) < _FRAME.size:
        raise UnreadableRecord("malformed", "shorter than a Confluent frame")
    magic, schema_id = _FRAME.unpack_from(value)
    if magic != MAGIC:
        raise UnreadableRecord("malformed", f"magic byte {magic} instead of 0")
    model, writer, reader = _reader(schema_id)
    buffer = io.BytesIO(value)
    buffer.seek(_FRAME.size)
    try:
        fields = fastavro.schemaless_reader(buffer, writer, reader)
        message = model.model_validate(fields)
    except (ValidationError, ValueError, EOFError, IndexError, TypeError, OverflowError) as error:
        raise UnreadableRecord("malformed", f"not a {model.__name__}: {_first_line(error)}") from error
    if buffer.tell() != len(value):
        raise UnreadableRecord("malformed", "bytes are left over after the record")
    return message


@cache
def _writer(model: type[Message]) -> tuple[bytes, Any]:
    entry = registry.builtin().latest(SUBJECTS[model])
    return _FRAME.pack(MAGIC, entry.schema_id), _parsed(entry.schema_id)


@cache
def _parsed(schema_id: int) -> Any:
    return fastavro.parse_schema(registry.builtin().by_id[schema_id].schema)


def _reader(schema_id: int) -> tuple[type[Message], Any, Any]:
    entry = registry.builtin().by_id.get(schema_id)
    if entry is None or entry.subject not in MODELS:
        raise UnreadableRecord("unknown_schema", f"schema id {schema_id} is not in the manifest")
    return _reader_of(schema_id)


@cache
def _reader_of(schema_id: int) -> tuple[type[Message], Any, Any]:
    book = registry.builtin()
    entry = book.by_id[schema_id]
    newest = book.latest(entry.subject)
    # Resolution costs time, so it is asked for only where an older version wrote the record.
    reader = None if newest.schema_id == schema_id else _parsed(newest.schema_id)
    return MODELS[entry.subject], _parsed(schema_id), reader


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]
