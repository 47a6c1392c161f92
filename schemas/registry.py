"""The schemas of the wire: which id stands for which version of which record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

AVRO_DIR = Path(__file__).parent / "avro"


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """One version of one record schema. `subject` is its full name (RecordNameStrategy)."""

    subject: str
    version: int
    schema_id: int
    text: str

    @property
    def schema(self) -> dict[str, Any]:
        """The schema as parsed JSON."""
        parsed: dict[str, Any] = json.loads(self.text)
        return parsed


@dataclass(frozen=True, slots=True)
class Registry:
    """All schemas ever shipped, by id and by subject (versions in order)."""

    by_id: Mapping[int, SchemaEntry]
    by_subject: Mapping[str, tuple[SchemaEntry, ...]]

    def latest(self, subject: str) -> SchemaEntry:
        """The newest version of a subject.

        Raises:
            KeyError: no such subject.
        """
        return self.by_subject[subject][-1]


@cache
def builtin() -> Registry:
    """The registry made of the manifest and the `.avsc` files beside this module."""
    manifest = json.loads((AVRO_DIR / "manifest.json").read_text())
    by_subject = {
        subject: tuple(
            SchemaEntry(subject, row["version"], row["id"], (AVRO_DIR / row["file"]).read_text())
            for row in rows
        )
        for subject, rows in manifest.items()
    }
    by_id = {entry.schema_id: entry for entries in by_subject.values() for entry in entries}
    return Registry(by_id, by_subject)
