"""Bytes that were written once are read by today's code, and today's code still writes the newest the same."""

from __future__ import annotations

import pytest

from schemas import codec, registry
from schemas.registry import SchemaEntry
from tests.golden import avro_vectors

ENTRIES = sorted(registry.builtin().by_id.values(), key=lambda entry: entry.schema_id)
NEWEST = [entries[-1] for entries in registry.builtin().by_subject.values()]
HOW = (
    "These bytes are on somebody's log and must not change. To change a message, add a new version: a new "
    ".avsc, its row in schemas/avro/manifest.json, then `python -m tests.golden.avro_vectors`."
)


def test_every_version_ever_shipped_has_golden_bytes() -> None:
    names = [avro_vectors.stem(entry) for entry in ENTRIES]
    assert list(avro_vectors.golden()) == names, (
        "run `python -m tests.golden.avro_vectors`, and remove nothing"
    )


def test_what_is_added_leaves_what_is_there_as_it_is() -> None:
    assert avro_vectors.text_of(avro_vectors.golden()) == avro_vectors.FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", ENTRIES, ids=avro_vectors.stem)
def test_decode_of_golden_bytes_is_the_message_that_was_written(entry: SchemaEntry) -> None:
    model = codec.MODELS[entry.subject]
    for body, value in zip(avro_vectors.read_bodies(entry), avro_vectors.read_values(entry), strict=True):
        message = codec.decode(value)
        assert type(message) is model
        now = message.model_dump(mode="json")
        # What a later version dropped is gone, what it added has its default: all else is as it was.
        assert {name: now[name] for name in body if name in now} == {
            n: v for n, v in body.items() if n in now
        }


@pytest.mark.parametrize("entry", NEWEST, ids=avro_vectors.stem)
def test_encode_of_the_newest_version_is_the_golden_bytes(entry: SchemaEntry) -> None:
    model = codec.MODELS[entry.subject]
    bodies = avro_vectors.read_bodies(entry)
    encoded = [codec.encode(model.model_validate(body)) for body in bodies]
    assert encoded == avro_vectors.read_values(entry), HOW


@pytest.mark.parametrize("entry", NEWEST, ids=avro_vectors.stem)
def test_golden_message_sets_every_field_of_the_newest_version(entry: SchemaEntry) -> None:
    full, bare = avro_vectors.read_bodies(entry)
    assert set(full) == set(bare) == set(codec.MODELS[entry.subject].model_fields)
    assert None not in full.values()
