"""The manifest is the list of all that ever was on the wire: nothing in it changes, nothing is used twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from schemas import registry
from schemas.canonical import sha256_hex
from schemas.registry import AVRO_DIR, ManifestError

HOW = (
    "A shipped schema is never edited. Restore {files}; put the change into a new .avsc with the next version "
    "and the next free id, list it in schemas/avro/manifest.json with its sha256sum, and run "
    "`python -m tests.golden.avro_vectors`."
)


def edited_files(directory: Path) -> list[str]:
    """The schema files that differ in any byte from what was shipped according to the manifest."""
    manifest = json.loads((directory / "manifest.json").read_bytes())
    rows = [row for rows in manifest.values() for row in rows]
    return [
        row["file"] for row in rows if sha256_hex((directory / row["file"]).read_bytes()) != row["sha256"]
    ]


def write(directory: Path, manifest: Mapping[str, list[dict[str, Any]]], **files: str) -> Path:
    (directory / "manifest.json").write_text(json.dumps(manifest))
    for name, text in files.items():
        (directory / f"{name}.avsc").write_text(text)
    return directory


def row(version: int, schema_id: int, file: str = "A.avsc", sha256: str = "") -> dict[str, Any]:
    return {"version": version, "id": schema_id, "file": file, "sha256": sha256}


def test_shipped_schemas_are_byte_for_byte_what_was_listed() -> None:
    edited = edited_files(AVRO_DIR)
    assert not edited, HOW.format(files=", ".join(edited))


def test_ids_of_the_manifest_count_from_one_without_a_gap() -> None:
    # A registry that gives ids itself (Apicurio) counts so: only then an import into an empty one is the same.
    ids = sorted(registry.builtin().by_id)
    assert ids == list(range(1, len(ids) + 1))


def test_every_schema_file_is_listed_once() -> None:
    manifest = json.loads((AVRO_DIR / "manifest.json").read_bytes())
    listed = [row["file"] for rows in manifest.values() for row in rows]
    assert sorted(listed) == sorted(str(path.relative_to(AVRO_DIR)) for path in AVRO_DIR.rglob("*.avsc"))


def test_every_schema_file_says_the_subject_and_version_it_is_listed_under() -> None:
    manifest = json.loads((AVRO_DIR / "manifest.json").read_bytes())
    for subject, rows in manifest.items():
        room, name = subject.split(".")[1:]
        assert [row["file"] for row in rows] == [f"{room}/{name}.{row['version']}.avsc" for row in rows]
        for entry in registry.builtin().by_subject[subject]:
            assert f"{entry.schema['namespace']}.{entry.schema['name']}" == subject


def test_latest_is_the_last_version(tmp_path: Path) -> None:
    write(tmp_path, {"a.A": [row(1, 1), row(2, 2, "B.avsc")]}, A='{"first": 1}', B='{"second": 2}')
    book = registry.load(tmp_path)
    assert book.latest("a.A").schema == {"second": 2}
    assert book.by_id[1].version == 1


def test_edited_file_is_noticed(tmp_path: Path) -> None:
    sha256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    write(tmp_path, {"a.A": [row(1, 1, sha256=sha256)]}, A="{}")
    assert edited_files(tmp_path) == []
    (tmp_path / "A.avsc").write_text("{ }")
    assert edited_files(tmp_path) == ["A.avsc"]


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ({"a.A": [row(1, 7)], "a.B": [row(1, 7)]}, "schema id 7 is given twice"),
        ({"a.A": [row(1, 7), row(2, 7)]}, "schema id 7 is given twice"),
        ({"a.A": [row(2, 1)]}, "versions of a.A"),
        ({"a.A": [row(1, 1), row(3, 2)]}, "versions of a.A"),
        ({"a.A": [row(2, 1), row(1, 2)]}, "versions of a.A"),
    ],
)
def test_load_of_a_manifest_that_contradicts_itself_is_refused(
    tmp_path: Path, manifest: dict[str, list[dict[str, Any]]], told: str
) -> None:
    with pytest.raises(ManifestError, match=told):
        registry.load(write(tmp_path, manifest, A="{}"))
