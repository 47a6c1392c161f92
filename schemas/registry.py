"""The schemas of the wire format, and the id of each version of each record.

`avro/manifest.json` lists every version ever shipped with its id, file and SHA-256. A shipped file is never
edited: a change is a new version, with the next free id.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from schemas.canonical import parse_strict

AVRO_DIR = Path(__file__).parent / "avro"


class ManifestError(Exception):
    """The manifest contradicts itself; the message names the place and the remedy."""


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
    """The registry made of the manifest and the `.avsc` files beside this module.

    Raises:
        ManifestError: see `load`.
    """
    return load(AVRO_DIR)


def load(directory: Path) -> Registry:
    """The registry in a directory: its `manifest.json` and the schema files that it names.

    Raises:
        ManifestError: two schemas have one id, or the versions of a subject are not 1, 2, 3, …
    """
    by_subject = {
        subject: tuple(_entry(directory, subject, row) for row in rows)
        for subject, rows in _manifest(directory).items()
    }
    by_id: dict[int, SchemaEntry] = {}
    for subject, entries in by_subject.items():
        if [entry.version for entry in entries] != list(range(1, len(entries) + 1)):
            raise ManifestError(f"the versions of {subject} must be 1, 2, 3, … in order")
        for entry in entries:
            if by_id.setdefault(entry.schema_id, entry) is not entry:
                raise ManifestError(f"schema id {entry.schema_id} is given twice: take the next free one")
    return Registry(by_id, by_subject)


def _manifest(directory: Path) -> dict[str, list[dict[str, Any]]]:
    manifest: dict[str, list[dict[str, Any]]] = parse_strict((directory / "manifest.json").read_bytes())
    return manifest


def _entry(directory: Path, subject: str, row: Mapping[str, Any]) -> SchemaEntry:
    text = (directory / row["file"]).read_text(encoding="utf-8")
    return SchemaEntry(subject, row["version"], row["id"], text)
