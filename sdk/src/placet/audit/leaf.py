"""Leaf hashes: SHA-256 of a zero byte and the MessagePack array of a record's parts in the log.

The array is `["placet.audit-leaf.v1", topic, partition, offset, key, [[name, value], …], value]`: text as str, bytes
as bin, lengths and numbers in their shortest form.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from placet.audit.strict import base64_bytes, count, items, members, text

FORMAT = "placet.audit-leaf.v1"
MEMBERS = frozenset({"topic", "partition", "offset", "key", "headers", "value"})


def leaf_of(record: dict[str, Any]) -> bytes:
    """The leaf hash of a record in the API's form, with bytes in base64.

    Raises:
        ValueError: it is not such a record, or has members that the leaf does not cover.
    """
    members(record, MEMBERS)
    headers = [(text(name), base64_bytes(value)) for name, value in map(items, items(record["headers"]))]
    parts = [
        b"\x00\x97",
        _text(FORMAT),
        _text(text(record["topic"])),
        _number(count(record["partition"])),
        _number(count(record["offset"])),
        *packed(base64_bytes(record["key"]), headers, base64_bytes(record["value"])),
    ]
    return sha256(b"".join(parts)).digest()


def packed(key: bytes, headers: Sequence[tuple[str, bytes]], value: bytes) -> list[bytes]:
    """The key, headers and value of a record as the last members of a MessagePack array."""
    parts = [_bytes(key), _array(len(headers))]
    for name, of_header in headers:
        parts += (b"\x92", _text(name), _bytes(of_header))
    return [*parts, _bytes(value)]


def header_of(record: dict[str, Any], wanted: str) -> str | None:
    """The text of a record's header; None if there is none."""
    found = [value for name, value in record["headers"] if name == wanted]
    return base64_bytes(found[0]).decode(errors="replace") if found else None


@lru_cache(maxsize=1024)
def _text(value: str) -> bytes:
    data = value.encode()
    size = len(data)
    if size < 32:
        return bytes((0xA0 | size,)) + data
    return _sized(size, (0xD9, 0xDA, 0xDB)) + data


def _bytes(data: bytes) -> bytes:
    size = len(data)
    return (_SHORT[size] if size < 1 << 8 else _sized(size, (0xC4, 0xC5, 0xC6))) + data


_SHORT = [bytes((0xC4, size)) for size in range(1 << 8)]


def _sized(size: int, codes: tuple[int, int, int]) -> bytes:
    if size < 1 << 8:
        return struct.pack(">BB", codes[0], size)
    if size < 1 << 16:
        return struct.pack(">BH", codes[1], size)
    return struct.pack(">BI", codes[2], size)


def _array(size: int) -> bytes:
    return bytes((0x90 | size,)) if size < 16 else struct.pack(">BH", 0xDC, size)


def _number(number: int) -> bytes:
    if number < 1 << 7:
        return bytes((number,))
    if number < 1 << 8:
        return struct.pack(">BB", 0xCC, number)
    if number < 1 << 16:
        return struct.pack(">BH", 0xCD, number)
    if number < 1 << 32:
        return struct.pack(">BI", 0xCE, number)
    return struct.pack(">BQ", 0xCF, number)
