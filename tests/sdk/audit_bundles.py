"""Audit trails made by the server's own code, written as `placet audit fetch` writes them, and ways to meddle."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import SigningKey, key_id, raw_public
from placet.audit.bundle import FORMAT, Bundle, compact
from placet.audit.heads import TreeName
from placet.audit.merkle import HASH_BYTES
from schemas.audit import Head, TopicRole, TreeHead, record_leaf, sign_head
from schemas.merkle import root_and_paths
from schemas.record import RawRecord
from tests.sdk.test_audit_merkle import shown

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = SigningKey(key_id(PRIVATE.public_key()), PRIVATE)
KEYS = {KEY.kid: raw_public(PRIVATE.public_key())}
TREE: TreeName = ("executions", 3)
EVERY = 10


@dataclass
class Trail:
    """One tree's records, and heads of it and of a tree of definitions beside it."""

    records: list[RawRecord]
    heads: list[Head]


def record_at(index: int, topic: TopicRole = "executions") -> RawRecord:
    """A record; offsets have gaps, as others' records stand between."""
    headers = (("ce_id", b"e%d" % index), ("placet_term", b"0"))
    return RawRecord(
        3 if topic == "executions" else 0, index * 3 + 1, 0, b"acme/main/r1", b"v%d" % index, headers
    )


def root_of(topic: TopicRole, records: list[RawRecord]) -> str:
    return root_and_paths([record_leaf(topic, record) for record in records])[0].hex()


def trail(count: int, every: int = EVERY) -> Trail:
    """A trail with a head after so many records, and at its end."""
    records = [record_at(index) for index in range(count)]
    definitions = [record_at(0, "definitions")]
    heads: list[Head] = []
    for size in sorted({*range(every, count + 1, every), count}):
        trees = [
            TreeHead("executions", 3, records[size - 1].offset, size, root_of("executions", records[:size])),
            TreeHead("definitions", 0, definitions[0].offset, 1, root_of("definitions", definitions)),
        ]
        heads.append(sign_head(KEY, "acme", "2026-01-01T00:00:00.000Z", heads[-1] if heads else None, trees))
    return Trail(records, heads)


def write(directory: Path, made: Trail) -> Bundle:
    """The trail as `placet audit fetch` leaves it."""
    bundle = Bundle(directory)
    (directory / "trees").mkdir(parents=True)
    bundle.about_file.write_text(json.dumps({"format": FORMAT, "tenant": "acme"}))
    bundle.keys_file.write_text(
        json.dumps({kid: base64.b64encode(raw).decode() for kid, raw in KEYS.items()})
    )
    bundle.heads_file.write_text("".join(f"{head.line}\n" for head in made.heads))
    definitions = [record_at(0, "definitions")]
    topics: list[tuple[TopicRole, int, list[RawRecord]]] = [
        ("executions", 3, made.records),
        ("definitions", 0, definitions),
    ]
    for topic, partition, records in topics:
        lines = [
            {"index": index, "offset": record.offset, "record": shown(record, topic)}
            for index, record in enumerate(records)
        ]
        bundle.records_file((topic, partition)).write_text("".join(compact(line) + "\n" for line in lines))
        leaves = b"".join(record_leaf(topic, record) for record in records)
        bundle.leaves_file((topic, partition)).write_bytes(leaves)
    return bundle


def change_lines(
    bundle: Bundle, change: Callable[[list[dict[str, Any]]], None], *, renumber: bool = True
) -> None:
    """Meddle with the records of the tree."""
    path = bundle.records_file(TREE)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    if renumber:
        for index, line in enumerate(lines):
            line["index"] = index
    path.write_text("".join(compact(line) + "\n" for line in lines))


def change_leaves(bundle: Bundle, change: Callable[[list[bytes]], None]) -> None:
    """Meddle with the listed hashes of the tree."""
    path = bundle.leaves_file(TREE)
    data = path.read_bytes()
    leaves = [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
    change(leaves)
    path.write_bytes(b"".join(leaves))
