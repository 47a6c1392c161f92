"""The `config.json` of an external tool: its port, the command that serves it, and the broker that it connects to.

{"port": 50056, "command": ["go", "run", "."], "broker": {"type": "websocket", "address": "localhost:8080"}}
"""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from pydantic_core import PydanticCustomError

from ops.errors import UsageError
from ops.ports import HIGHEST
from schemas.canonical import MalformedJson, parse_new
from schemas.policy_problems import problems_of

FILE_MAX_BYTES = 64 * 1024
ADDRESS_NEEDED = "this is not an address: write HOST:PORT, such as localhost:8080, or a ws:// or wss:// URL"
# The schemes of a broker's address, each with that of the same server's REST API.
HTTP_OF = {"ws": "http", "wss": "https"}


def _address(text: str) -> str:
    try:
        parts = urlsplit(text if "://" in text else f"ws://{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise PydanticCustomError("address", ADDRESS_NEEDED) from error
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if not (is_plain and parts.scheme in HTTP_OF and host) or port == 0 or parts.fragment:
        raise PydanticCustomError("address", ADDRESS_NEEDED)
    if "://" not in text and (port is None or parts.path or parts.query):
        raise PydanticCustomError("address", ADDRESS_NEEDED)
    return text


def _program(command: list[str]) -> list[str]:
    if not command[0]:
        raise PydanticCustomError("program", "the first item is empty: write the program there")
    return command


Word = Annotated[StrictStr, Field(pattern=r"^[^\x00]*$", max_length=4096)]


class _Part(BaseModel):
    """A part of the file: immutable, without fields that are not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Broker(_Part):
    """The server that carries a tool's questions to people.

    Attributes:
        type: `websocket`, the only kind.
        address: `HOST:PORT`, or a ws:// or wss:// URL.
    """

    type: Literal["websocket"]
    address: Annotated[StrictStr, Field(max_length=2048), AfterValidator(_address)]

    @property
    def http_url(self) -> str:
        """The REST API of the same server, if it is a gateway of Placet."""
        parts = urlsplit(self.address if "://" in self.address else f"ws://{self.address}")
        return f"{HTTP_OF[parts.scheme]}://{parts.netloc}"


class ToolFile(_Part):
    """The whole file.

    Attributes:
        port: where the tool serves gRPC.
        command: program and arguments, run in the file's directory; empty if the file has none.
        broker: the server that it connects to.
    """

    port: Annotated[StrictInt, Field(ge=1, le=HIGHEST)]
    command: Annotated[
        list[Word], Field(default_factory=list, min_length=1, max_length=1000), AfterValidator(_program)
    ]
    broker: Broker


def read_tool_file(path: Path) -> ToolFile:
    """Read a tool's file.

    Raises:
        UsageError: It cannot be read or used; the message names each faulty field and what to do.
    """
    raw = _read(path)
    if len(raw) > FILE_MAX_BYTES:
        raise UsageError(
            f"{path} is larger than {FILE_MAX_BYTES // 1024} KiB: it is not a tool's config.json."
        )
    try:
        # Editors of Windows begin a file with this mark.
        value = parse_new(raw.removeprefix(codecs.BOM_UTF8))
    except MalformedJson as error:
        raise UsageError(f"{path} cannot be used: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} cannot be used: it must be a JSON object with port, command and broker.")
    if (secret := _secret_part(value)) is not None:
        # Said without the address, which the other errors show.
        raise UsageError(
            f"{path} cannot be used: broker.address: an address cannot have {secret}; remove it."
        )
    try:
        return ToolFile.model_validate(value)
    except ValidationError as error:
        told = "; ".join(f"{each.path}: {each.message}" for each in problems_of(error, ToolFile))
        raise UsageError(f"{path} cannot be used: {told}.") from error


def _read(path: Path) -> bytes:
    """Return the beginning of a file, one byte more than a tool's file may have.

    Raises:
        UsageError: It is no regular file, or cannot be read.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} cannot be read: it is not a regular file.")
            return file.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error


def _open_at_once(path: str, flags: int) -> int:
    # Otherwise opening a FIFO waits until somebody writes into it.
    return os.open(path, flags | os.O_NONBLOCK)


def _secret_part(value: dict[str, Any]) -> str | None:
    """What part of the broker's address may be a secret; None if it has none. Tokens are not read from files."""
    broker = value.get("broker")
    address = str(broker.get("address")) if isinstance(broker, dict) else ""
    if "@" in address:
        return "a user or password"
    return "a query" if "?" in address else None
