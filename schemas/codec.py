"""Encoding and decoding of messages: Avro in Confluent framing (magic byte 0, schema id, body)."""

import io
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

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


class _Reader(NamedTuple):
    """How records of one schema id are read; `newest` is None if the id is the newest itself."""

    model: type[Message]
    validate: Callable[[Any], Message]
    writer: Any
    newest: Any


# By the five bytes of their frame.
_READERS: dict[bytes, _Reader] = {}


def encode(message: Message) -> bytes:
    """The framed bytes of a message, by the newest schema of its type."""
    frame, schema = _writer(type(message))
    buffer = io.BytesIO()
    buffer.write(frame)
    fastavro.schemaless_writer(buffer, schema, message.__dict__)
    return buffer.getvalue()


def decode(value: bytes) -> Message:
    """The message in framed bytes that any shipped version wrote.

    Raises:
        UnreadableRecord: foreign bytes, an unknown schema id, or a body that is not of its schema.
    """
    reader, fields = _decoded(value)
    try:
        return reader.validate(fields)
    except (ValidationError, ValueError, TypeError, OverflowError) as error:
        raise UnreadableRecord("malformed", f"not a {reader.model.__name__}: {_why(error)}") from error


def decode_fields(value: bytes) -> tuple[type[Message], dict[str, Any]]:
    """As `decode`, but the type and the fields as Avro has them, for readers that pass them on in bulk.

    Lists are not tuples, and a text of a closed list can be one that this version does not know.

    Raises:
        UnreadableRecord: as for `decode`.
    """
    reader, fields = _decoded(value)
    return reader.model, fields


def _decoded(value: bytes) -> tuple[_Reader, Any]:
    reader = _READERS.get(value[: _FRAME.size]) or _reader_of(value)
    buffer = io.BytesIO(value)
    buffer.seek(_FRAME.size)
    try:
        fields = fastavro.schemaless_reader(buffer, reader.writer, reader.newest)
    except (ValueError, EOFError, IndexError, TypeError, OverflowError) as error:
        raise UnreadableRecord("malformed", f"not a {reader.model.__name__}: {_why(error)}") from error
    if buffer.tell() != len(value):
        raise UnreadableRecord("malformed", "bytes are left over after the record")
    return reader, fields


def type_of(value: bytes) -> type[Message] | None:
    """The type of framed bytes according to their schema id; the body is not read.

    Returns:
        None if they are not Placet's.
    """
    try:
        return (_READERS.get(value[: _FRAME.size]) or _reader_of(value)).model
    except UnreadableRecord:
        return None


def is_of(value: bytes, model: type[Message]) -> bool:
    """Returns True if framed bytes are of a type according to their schema id."""
    return type_of(value) is model


def _reader_of(value: bytes) -> _Reader:
    """The reader for a frame seen for the first time; it is cached, foreign frames are not."""
    if len(value) < _FRAME.size:
        raise UnreadableRecord("malformed", "shorter than a Confluent frame")
    magic, schema_id = _FRAME.unpack_from(value)
    if magic != MAGIC:
        raise UnreadableRecord("malformed", f"magic byte {magic} instead of {MAGIC}")
    book = registry.builtin()
    entry = book.by_id.get(schema_id)
    if entry is None:
        raise UnreadableRecord("unknown_schema", f"schema id {schema_id} is not in the manifest")
    newest = book.latest(entry.subject)
    model = MODELS[entry.subject]
    reader = _READERS[value[: _FRAME.size]] = _Reader(
        model=model,
        # The function behind model_validate, without its checks of arguments that are never passed here.
        validate=model.__pydantic_validator__.validate_python,
        writer=_parsed(schema_id),
        # Schema resolution costs time, so it is done only if an older version wrote the record.
        newest=None if newest.schema_id == schema_id else _parsed(newest.schema_id),
    )
    return reader


@cache
def _writer(model: type[Message]) -> tuple[bytes, Any]:
    entry = registry.builtin().latest(SUBJECTS[model])
    return _FRAME.pack(MAGIC, entry.schema_id), _parsed(entry.schema_id)


@cache
def _parsed(schema_id: int) -> Any:
    return fastavro.parse_schema(registry.builtin().by_id[schema_id].schema)


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error).strip().split("\n")[0][:200]
