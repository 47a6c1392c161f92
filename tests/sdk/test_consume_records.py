"""Which records of a partition a consumer delivers, by the golden logs of the contract, and what it says of them."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet import CheckpointRefused, NotConfigured
from placet.consuming import records
from placet.consuming.kafka import KafkaLog
from placet.consuming.place import Place, place_text, read_place
from placet.consuming.records import Reader, Record, Schemas
from placet.consuming.registry import Registry
from placet.consuming.signatures import Signatures
from placet.parsing import UnexpectedAnswer
from placet.transport.rest import RestTransport
from schemas.events.executions import ExecutionPaused
from schemas.headers import event_record
from schemas.record import EventMeta
from tests.golden import signed_log
from tests.golden.test_log import LOGS, raw_record, read_log
from tests.sdk.consuming import registry_alone
from tests.sdk.scripted import QUICK, Scripted, serving

GOLDEN: dict[str, Any] = json.loads(signed_log.FILE.read_text(encoding="utf-8"))
META = EventMeta("e", 1_800_000_000_123, 0, 4, "c", "d", "acme")


@asynccontextmanager
async def closing(registry: Registry) -> AsyncIterator[Registry]:
    try:
        yield registry
    finally:
        await registry.close()


@asynccontextmanager
async def reading(signatures: Signatures | None = None, claim: int = 0) -> AsyncIterator[Reader]:
    """A reader whose schemas are those of this version; nothing was read yet of partition 0."""
    script = Scripted(on_http=registry_alone)
    async with serving(script), closing(Registry(RestTransport(script.url, None, QUICK))) as registry:
        yield Reader(Schemas(registry), signatures, {0: Place(claim=claim), GOLDEN["partition"]: Place()})


def paused(offset: int = 1, key: bytes = b"acme/books/run", **changed: bytes) -> Record:
    """A record of the term 0; a header that is changed to nothing is left out."""
    made = event_record(ExecutionPaused(reason="lunch", by="rita"), META, key)
    headers = [(name, changed.get(name, value)) for name, value in made.headers]
    return Record(0, offset, key, [(name, value) for name, value in headers if value], made.value)


def keys_of_golden_log(directory: Path, since: Any = 0) -> Path:
    keys = {kid: base64.b64encode(bytes.fromhex(raw)).decode() for kid, raw in GOLDEN["public_keys"].items()}
    (directory / "deciders.json").write_text(json.dumps(keys))
    (directory / "signed-from.json").write_text(json.dumps({GOLDEN["topic"]: [since] * 4}))
    return directory


def golden_records() -> list[Record]:
    return [
        Record(
            GOLDEN["partition"],
            line["offset"],
            line["key"].encode(),
            [(name, value.encode()) for name, value in line["headers"]],
            bytes.fromhex(line["value_hex"]),
        )
        for line in GOLDEN["records"]
    ]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
async def test_consumer_of_a_golden_log_delivers_what_counts(path: Path) -> None:
    claim, lines = read_log(path)
    raws = [raw_record(line) for line in lines]
    async with reading(claim=claim) as reader:
        read = [await reader.read(Record(0, raw.offset, raw.key, raw.headers, raw.value)) for raw in raws]
        ends = reader.places[0]
    assert [one is not None for one in read] == [line["accepted"] for line in lines]
    claims = [line["offset"] for line in lines if line["accepted"] and line["type"] == "WriterClaimed"]
    assert ends == Place(lines[-1]["offset"], claims[-1] if claims else claim, f"e-{lines[-1]['offset']}")


async def test_case_32_consumer_of_the_signed_golden_log_delivers_no_forgery(tmp_path: Path) -> None:
    signatures = Signatures(GOLDEN["topic"], keys_of_golden_log(tmp_path))
    expected = [
        line["offset"] for line in GOLDEN["records"] if line["counts"] and not line["key"].startswith("_log")
    ]
    async with reading(signatures) as reader:
        read = [await reader.read(record) for record in golden_records()]
    assert [one.offset for one in read if one is not None] == expected
    assert reader.places[GOLDEN["partition"]].claim == 0


@pytest.mark.parametrize(
    ("since", "owed"),
    [(0, True), (4, True), (5, False), ([0, 4], False), ([0, 2, 4], True), ([9], False)],
)
async def test_unsigned_record_counts_only_where_no_signature_is_required(
    tmp_path: Path, since: Any, owed: bool
) -> None:
    signatures = Signatures(GOLDEN["topic"], keys_of_golden_log(tmp_path, since))
    unsigned = golden_records()[4]
    assert unsigned.headers[-1][0] != "placet_signature"
    assert signatures.vouch(*unsigned) is not owed
    assert signatures.vouch(9, *unsigned[1:]) is False


async def test_keys_that_are_rotated_are_read_again(tmp_path: Path) -> None:
    keys = keys_of_golden_log(tmp_path)
    known = (keys / "deciders.json").read_text()
    (keys / "deciders.json").write_text("{}")
    signatures = Signatures(GOLDEN["topic"], keys)
    signed = golden_records()[1]
    assert not signatures.vouch(*signed)
    (keys / "deciders.json").write_text(known)
    assert signatures.vouch(*signed)


async def test_keys_are_not_read_again_for_a_name_that_the_same_file_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = keys_of_golden_log(tmp_path)
    (keys / "deciders.json").write_text("{}")
    signatures = Signatures(GOLDEN["topic"], keys)
    read: list[Path] = []

    def text(path: Path, **more: Any) -> str:
        read.append(path)
        return path.read_bytes().decode()

    monkeypatch.setattr(Path, "read_text", text)
    assert not any(signatures.vouch(*golden_records()[1]) for _ in range(100))
    assert read == []


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": "AAAA"}'])
def test_keys_that_are_none_are_refused_before_anything_is_read(tmp_path: Path, text: str) -> None:
    keys_of_golden_log(tmp_path)
    (tmp_path / "deciders.json").write_text(text)
    with pytest.raises(NotConfigured, match=r"deciders\.json|has no object"):
        KafkaLog.of("127.0.0.1:1", None, "placet", tmp_path)


async def test_record_says_what_the_stream_says() -> None:
    async with reading() as reader:
        found = await reader.read(paused())
    assert found is not None
    assert (found.id, found.type, found.execution_id, found.version) == ("e", "ExecutionPaused", "run", 4)
    assert (found.tenant, found.project, found.partition, found.offset) == ("acme", "books", 0, 1)
    assert (found.at.isoformat(), found.term) == ("2027-01-15T08:00:00.123000+00:00", 0)
    assert found.data["reason"] == "lunch"
    assert found.raw == paused().value


async def test_record_of_an_unknown_schema_is_delivered_with_its_type_and_raw_value() -> None:
    raw = b"\x00" + (99_999).to_bytes(4, "big") + b"whatever"
    record = paused(ce_type=b"placet.events.HoldTeleported")._replace(value=raw)
    async with reading() as reader:
        found = await reader.read(record)
    assert found is not None
    assert (found.type, found.data, found.raw) == ("HoldTeleported", {}, raw)


async def test_schema_that_is_missing_is_asked_for_once_and_later_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = b"\x00" + (99_999).to_bytes(4, "big") + b"whatever"
    script = Scripted(on_http=registry_alone)
    async with serving(script), closing(Registry(RestTransport(script.url, None, QUICK))) as registry:
        schemas = Schemas(registry)
        for _ in range(100):
            assert await schemas.fields(raw) is None
        assert len(script.asked) == 1
        monkeypatch.setattr(records, "MISSING_S", 0.0)
        assert await schemas.fields(raw) is None
    assert len(script.asked) == 2


async def test_claim_of_an_unknown_schema_stops_the_consumer() -> None:
    record = paused(ce_type=b"placet.events.WriterClaimed")._replace(value=b"\x00\x00\x01\x86\x9fx")
    async with reading() as reader:
        with pytest.raises(UnexpectedAnswer, match="no schema of the claim"):
            await reader.read(record)


async def test_unsigned_claim_of_an_unknown_schema_is_passed(tmp_path: Path) -> None:
    record = paused(ce_type=b"placet.events.WriterClaimed")._replace(value=b"\x00\x00\x01\x86\x9fx")
    async with reading(Signatures(GOLDEN["topic"], keys_of_golden_log(tmp_path))) as reader:
        assert await reader.read(record) is None
        assert reader.places[0] == Place(1, 0, "e")


@pytest.mark.parametrize(
    "record",
    [
        paused(placet_term=b""),
        paused(placet_term=b"x"),
        paused(ce_time=b"yesterday"),
        paused(ce_id=b""),
        paused()._replace(value=b"not framed"),
        paused()._replace(value=paused().value + b"x"),
        paused()._replace(value=paused().value[:7]),
        paused(key=b"acme/\xff/run"),
        Record(0, 1, b"", [], b""),
    ],
)
async def test_record_of_no_decider_is_set_aside_with_a_warning(
    record: Record, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading() as reader:
        assert await reader.read(record) is None
        assert (await reader.read(paused(2))) is not None
        assert reader.places[0].offset == 2
    assert "the record 0/1 is set aside" in caplog.text


@pytest.mark.parametrize("key", [b"_log/0", b"acme/books/rule/r1"])
async def test_record_of_no_execution_is_passed_without_a_warning(
    key: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading() as reader:
        assert await reader.read(paused(key=key)) is None
    assert caplog.text == ""


PLACES = st.dictionaries(
    st.integers(0, 11), st.builds(Place, st.integers(0, 2**63), st.integers(-1, 2**63), st.text(max_size=9))
)


@given(PLACES)
def test_position_is_read_as_it_was_written(places: dict[int, Place]) -> None:
    text = place_text("placet.executions", places)
    assert read_place(text, "placet.executions", set(range(12))) == {
        n: places.get(n, Place()) for n in range(12)
    }


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        ("AQD__wAEAAAAAQ", "other_log"),
        ("kafka.", "unreadable"),
        ("kafka.é", "unreadable"),
        ("kafka.e30", "unreadable"),
        (place_text("other.executions", {0: Place(1, 0, "e")}), "other_log"),
        (place_text("placet.executions", {12: Place(1, 0, "e")}), "other_log"),
    ],
)
def test_position_of_something_else_is_refused(cursor: str, why: str) -> None:
    with pytest.raises(CheckpointRefused) as error:
        read_place(cursor, "placet.executions", set(range(12)))
    assert error.value.why == why
