"""Golden bytes of every message version ever shipped: `python -m tests.golden.avro_vectors` adds what is missing.

`avro.json` holds two messages of each version (every field set; every field empty) with their framed bytes in hex.
What is there is never written again: bytes that were on a log stay readable for ever.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TypedDict

from schemas import codec, registry
from schemas.registry import SchemaEntry
from tests.schemas import samples

FILE = Path(__file__).parent / "avro.json"


class Vector(TypedDict):
    """A message's fields, and its framed bytes."""

    body: dict[str, object]
    hex: str


def stem(entry: SchemaEntry) -> str:
    """The name of a version's golden messages."""
    return f"{entry.subject.rpartition('.')[2]}.{entry.version}"


@cache
def golden() -> dict[str, list[Vector]]:
    """The golden messages of every version, in the order of the schemas' ids."""
    vectors: dict[str, list[Vector]] = json.loads(FILE.read_text(encoding="utf-8"))
    return vectors


def read_bodies(entry: SchemaEntry) -> list[dict[str, object]]:
    """The fields of a version's golden messages."""
    return [vector["body"] for vector in golden()[stem(entry)]]


def read_values(entry: SchemaEntry) -> list[bytes]:
    """The framed bytes of a version's golden messages."""
    return [bytes.fromhex(vector["hex"]) for vector in golden()[stem(entry)]]


def missing() -> list[SchemaEntry]:
    """The newest versions that have no golden bytes yet, in the order of their ids."""
    newest = [entries[-1] for entries in registry.builtin().by_subject.values()]
    lacking = [entry for entry in newest if stem(entry) not in golden()]
    return sorted(lacking, key=lambda entry: entry.schema_id)


def made(entry: SchemaEntry) -> list[Vector]:
    """The golden messages of a version that has none."""
    model = codec.MODELS[entry.subject]
    messages = (samples.full(model), samples.bare(model))
    return [{"body": one.model_dump(mode="json"), "hex": codec.encode(one).hex()} for one in messages]


def text_of(vectors: dict[str, list[Vector]]) -> str:
    """The file's text."""
    return json.dumps(vectors, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    added = {stem(entry): made(entry) for entry in missing()}
    FILE.write_text(text_of({**golden(), **added}), encoding="utf-8")
    for name in added:
        print(f"added {name}")
