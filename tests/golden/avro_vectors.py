"""Golden bytes of every message version ever shipped: `python -m tests.golden.avro_vectors` adds what is missing.

`avro/<Name>.<version>.json` holds two messages (every field set; every field empty), `.hex` their framed bytes,
a line each. A file that is there is never written again: bytes that were on a log stay readable for ever.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schemas import codec, registry
from schemas.registry import SchemaEntry
from tests.schemas import samples

DIRECTORY = Path(__file__).parent / "avro"


def stem(entry: SchemaEntry) -> str:
    """The name of a version's golden files."""
    return f"{entry.subject.rpartition('.')[2]}.{entry.version}"


def read_bodies(entry: SchemaEntry) -> list[dict[str, Any]]:
    """The fields of a version's golden messages."""
    bodies: list[dict[str, Any]] = json.loads((DIRECTORY / f"{stem(entry)}.json").read_text(encoding="utf-8"))
    return bodies


def read_values(entry: SchemaEntry) -> list[bytes]:
    """The framed bytes of a version's golden messages."""
    return [bytes.fromhex(line) for line in (DIRECTORY / f"{stem(entry)}.hex").read_text().splitlines()]


def missing() -> list[SchemaEntry]:
    """The newest versions that have no golden bytes yet."""
    newest = [entries[-1] for entries in registry.builtin().by_subject.values()]
    return [entry for entry in newest if not (DIRECTORY / f"{stem(entry)}.hex").exists()]


def add(entry: SchemaEntry) -> None:
    """Write the golden files of a version that has none."""
    model = codec.MODELS[entry.subject]
    messages = [samples.full(model), samples.bare(model)]
    bodies = [message.model_dump(mode="json") for message in messages]
    text = json.dumps(bodies, indent=1, ensure_ascii=False)
    (DIRECTORY / f"{stem(entry)}.json").write_text(f"{text}\n", encoding="utf-8")
    (DIRECTORY / f"{stem(entry)}.hex").write_text("".join(f"{codec.encode(m).hex()}\n" for m in messages))


if __name__ == "__main__":
    for lacking in missing():
        add(lacking)
        print(f"added {stem(lacking)}")
