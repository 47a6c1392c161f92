"""Every message that can exist can be written, is read back the same, and nothing else is read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas import codec, registry
from schemas.commands import COMMANDS, ClaimHold, PauseExecution
from schemas.events import EVENTS
from schemas.events.calls import PolicyVerdictIssued
from schemas.events.log import DefinitionsAdopted
from schemas.message import Message
from schemas.record import UnreadableRecord
from tests.schemas import samples
from tests.schemas.strategies import any_message

SCHEMA_IDS = sorted(registry.builtin().by_id)


def framed(schema_id: int, body: bytes, magic: int = 0) -> bytes:
    return struct.pack(">bI", magic, schema_id) + body


@given(any_message())
def test_decode_of_encode_is_the_message(message: Message) -> None:
    again = codec.decode(codec.encode(message))
    assert again == message
    assert type(again) is type(message)


@given(any_message())
def test_fields_of_a_value_are_those_of_its_message(message: Message) -> None:
    model, fields = codec.decode_fields(codec.encode(message))
    assert model is type(message)
    assert model(**fields) == message


@pytest.mark.parametrize("model", codec.MODELS.values(), ids=lambda model: model.__name__)
def test_encode_is_confluent_framed_with_the_newest_id(model: type[Message]) -> None:
    value = codec.encode(samples.full(model))
    newest = registry.builtin().latest(codec.SUBJECTS[model])
    assert value[:5] == b"\x00" + newest.schema_id.to_bytes(4, "big")


def test_subjects_are_the_full_names_of_all_messages() -> None:
    assert set(codec.MODELS.values()) == {*COMMANDS, *EVENTS}
    assert set(codec.MODELS) == set(registry.builtin().by_subject)
    assert codec.SUBJECTS[ClaimHold] == "placet.commands.ClaimHold"


@given(st.binary(max_size=80))
def test_decode_of_any_bytes_is_a_message_or_unreadable(value: bytes) -> None:
    try:
        codec.decode(value)
    except UnreadableRecord:
        return


@given(st.sampled_from(SCHEMA_IDS), st.binary(max_size=120))
def test_decode_of_any_body_under_a_known_id_is_a_message_or_unreadable(schema_id: int, body: bytes) -> None:
    try:
        message = codec.decode(framed(schema_id, body))
    except UnreadableRecord:
        return
    assert codec.decode(codec.encode(message)) == message


@given(any_message(), st.data())
def test_decode_of_damaged_bytes_is_a_message_or_unreadable(message: Message, data: st.DataObject) -> None:
    value = bytearray(codec.encode(message))
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] ^= data.draw(st.integers(1, 255))
    try:
        codec.decode(bytes(value))
    except UnreadableRecord:
        return


@given(any_message(), st.data())
def test_decode_of_a_cut_value_is_unreadable(message: Message, data: st.DataObject) -> None:
    value = codec.encode(message)
    with pytest.raises(UnreadableRecord):
        codec.decode(value[: data.draw(st.integers(0, len(value) - 1))])


@pytest.mark.parametrize(
    ("value", "reason", "told"),
    [
        (b"", "malformed", "shorter"),
        (b"\x00\x00\x00\x00", "malformed", "shorter"),
        (b'{"json": true}', "malformed", "magic byte"),
        (framed(1, b"", magic=1), "malformed", "magic byte 1"),
        (framed(0, b""), "unknown_schema", "schema id 0"),
        (framed(2**32 - 1, b""), "unknown_schema", "not in the manifest"),
        (codec.encode(ClaimHold(hold_id="h")) + b"\x00", "malformed", "left over"),
        (framed(12, b"\x04\xff\xff"), "malformed", "not a ClaimHold"),
        (framed(12, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01x"), "malformed", "not a ClaimHold"),
        (framed(12, b"\x01"), "malformed", "not a ClaimHold"),
    ],
)
def test_decode_of_foreign_bytes_says_why(value: bytes, reason: str, told: str) -> None:
    with pytest.raises(UnreadableRecord, match=told) as caught:
        codec.decode(value)
    assert caught.value.reason == reason


def test_decode_of_a_value_outside_the_closed_lists_is_unreadable() -> None:
    verdict = samples.full(PolicyVerdictIssued)
    value = codec.encode(verdict)
    assert b"deny" in value
    with pytest.raises(UnreadableRecord, match="not a PolicyVerdictIssued"):
        codec.decode(value.replace(b"deny", b"Deny"))


def test_decode_of_a_number_that_is_none_is_unreadable() -> None:
    value = codec.encode(samples.full(PolicyVerdictIssued))
    number = struct.pack("<d", samples.full(PolicyVerdictIssued).risk_score)  # type: ignore[attr-defined]
    assert number in value
    with pytest.raises(UnreadableRecord, match="finite"):
        codec.decode(value.replace(number, struct.pack("<d", float("nan"))))


@pytest.mark.parametrize("seconds", [2**63, -(2**63) - 1, 2**200])
def test_message_with_an_integer_beyond_avros_long_cannot_exist(seconds: int) -> None:
    with pytest.raises(ValidationError):
        ClaimHold(hold_id="h", seconds=seconds)
    with pytest.raises(ValidationError):
        DefinitionsAdopted(through_offset=0, through_record_id="", through_term=0, versions={"a": seconds})


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_message_with_a_lone_surrogate_cannot_exist(text: str) -> None:
    with pytest.raises(ValidationError):
        PauseExecution(reason=text)
    with pytest.raises(ValidationError):
        DefinitionsAdopted(through_offset=0, through_record_id="", through_term=0, versions={text: 1})


@pytest.fixture
def two_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[registry.Registry]:
    """A registry in which PauseExecution was written by an older schema, without `reason`."""
    first = {"type": "record", "namespace": "placet.commands", "name": "PauseExecution", "fields": []}
    second = registry.builtin().latest("placet.commands.PauseExecution").schema
    versions = []
    for number, schema in enumerate((first, second), 1):
        file = tmp_path / f"PauseExecution.{number}.avsc"
        file.write_text(json.dumps(schema))
        versions.append({"version": number, "id": 900 + number, "file": file.name, "sha256": ""})
    (tmp_path / "manifest.json").write_text(json.dumps({"placet.commands.PauseExecution": versions}))
    planted = registry.load(tmp_path)
    caches = (codec._writer, codec._parsed)
    monkeypatch.setattr(codec, "_READERS", {})
    monkeypatch.setattr(registry, "builtin", lambda: planted)
    for cache in caches:
        cache.cache_clear()
    yield planted
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("two_versions")
def test_decode_of_an_older_version_fills_in_todays_defaults() -> None:
    assert codec.decode(framed(901, b"")) == PauseExecution(reason="")


@pytest.mark.usefixtures("two_versions")
def test_encode_with_two_versions_writes_the_newest() -> None:
    value = codec.encode(PauseExecution(reason="lunch"))
    assert value[:5] == framed(902, b"")
    assert codec.decode(value) == PauseExecution(reason="lunch")


def test_encode_is_what_any_avro_library_reads() -> None:
    from io import BytesIO

    message = samples.full(PolicyVerdictIssued)
    schema = registry.builtin().latest(codec.SUBJECTS[PolicyVerdictIssued]).schema
    read = fastavro.schemaless_reader(BytesIO(codec.encode(message)[5:]), schema, None)
    assert read == message.model_dump(mode="json")
