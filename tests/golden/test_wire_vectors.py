"""The vectors that clients in other languages are written against stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from schemas.envelope import Verifier
from schemas.headers import read_event
from schemas.record import RawRecord
from tests.golden import wire_vectors

HOW = "the wire changed: clients elsewhere break. Undo it, or add a new form beside the old one"
GOLDEN: dict[str, Any] = json.loads(wire_vectors.FILE.read_text(encoding="utf-8"))


def raw_of(record: dict[str, Any]) -> RawRecord:
    headers = tuple((name, value.encode()) for name, value in record["headers"].items())
    return RawRecord(0, 0, 0, record["key"].encode(), bytes.fromhex(record["value_hex"]), headers)


@pytest.mark.parametrize("part", GOLDEN)
def test_todays_code_makes_the_golden_vectors(part: str) -> None:
    assert wire_vectors.vectors()[part] == GOLDEN[part], HOW


def test_vectors_leave_nothing_out() -> None:
    assert set(wire_vectors.vectors()) == set(GOLDEN)


@pytest.mark.parametrize("file", wire_vectors.EVER_SHIPPED, ids=lambda file: file.name)
def test_todays_code_reads_the_golden_records(file: Path) -> None:
    golden = json.loads(file.read_text(encoding="utf-8"))
    batch = golden["signed_batch"]
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(batch["public_key"]))

    def no_token(token: str, at_ms: int) -> Any:
        raise ValueError(token)

    reader = Verifier({batch["kid"]: key}.get, no_token)
    for command in batch["commands"]:
        read = reader.read(raw_of(command["record"]))
        # What came later is empty in an older record.
        assert read.body == type(read.body)(**command["body"])
        assert read.digest == command["command_digest"]
    event = read_event(raw_of(golden["event"]["record"]))
    assert event.body == type(event.body)(**golden["event"]["body"])
