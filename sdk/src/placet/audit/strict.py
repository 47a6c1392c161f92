"""Strict parsing of a server's data: every byte of it has one meaning, or is refused.

Unsigned members are not accepted: an object has exactly the members that its format names, each once.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Collection
from typing import Any

from placet.audit.merkle import HASH_BYTES

LARGEST = (1 << 63) - 1
_HEX = re.compile(r"(?:[0-9a-f]{2})*")


def parsed(text: str) -> Any:
    """An unambiguous JSON value.

    Raises:
        ValueError: the text is not JSON, or has a key twice, or NaN or Infinity.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def members(value: Any, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """An object with all of the required members, and no others except optional ones.

    Raises:
        ValueError: it is something else.
    """
    if type(value) is not dict:
        raise ValueError("not a JSON object")
    if value.keys() != required:
        missing = [name for name in required if name not in value]
        unknown = [name for name in value if name not in required and name not in optional]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing")
        if unknown:
            raise ValueError(f"{unknown[0][:40]!r} is unknown here and not signed")
    return value


def items(value: Any) -> list[Any]:
    """A list.

    Raises:
        ValueError: it is something else.
    """
    if type(value) is not list:
        raise ValueError("not a list")
    return value


def text(value: Any) -> str:
    """A string that is Unicode text.

    Raises:
        ValueError: it is something else.
    """
    if type(value) is not str:
        raise ValueError("not a string")
    value.encode()
    return value


def count(value: Any) -> int:
    """A whole number from 0 to 2^63 - 1, written as one.

    Raises:
        ValueError: it is something else.
    """
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise ValueError("not a whole number from 0 on")
    return value


def base64_bytes(value: Any) -> bytes:
    """Bytes in base64 (RFC 4648, section 4), in the only valid spelling.

    Raises:
        ValueError: it is something else.
    """
    data = a2b_base64(text(value))
    # The decoder would ignore bits beyond the last byte, missing padding and other characters in between.
    if b64encode(data).decode() != value:
        raise ValueError("not base64")
    return data


def hex_hash(value: Any) -> bytes:
    """A SHA-256 hash in lower-case hex.

    Raises:
        ValueError: it is something else.
    """
    if len(text(value)) != 2 * HASH_BYTES or not _HEX.fullmatch(value):
        raise ValueError("not a hash in lower-case hex")
    return bytes.fromhex(value)


def whole_lines(data: bytes) -> list[str]:
    """The lines of a file in which each line ends with U+000A.

    Raises:
        ValueError: the last line has no end, or the bytes are not UTF-8.
    """
    if data and not data.endswith(b"\n"):
        raise ValueError("the last line does not end with a line feed")
    return data.decode().split("\n")[:-1]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
