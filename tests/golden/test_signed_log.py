"""The signed log of the contract stays as it is: which of its records count, for readers of today."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from schemas import merkle
from schemas.event_signatures import TopicSignatures
from schemas.headers import read_event
from schemas.record import RawRecord
from schemas.term import TermRule
from tests.golden import signed_log

GOLDEN: dict[str, Any] = json.loads(signed_log.FILE.read_text(encoding="utf-8"))
KEYS = {
    kid: Ed25519PublicKey.from_public_bytes(bytes.fromhex(raw)) for kid, raw in GOLDEN["public_keys"].items()
}


def raw_of(line: dict[str, Any]) -> RawRecord:
    headers = tuple((name, value.encode()) for name, value in line["headers"])
    value = bytes.fromhex(line["value_hex"])
    return RawRecord(GOLDEN["partition"], line["offset"], 0, line["key"].encode(), value, headers)


def test_todays_code_makes_the_golden_log() -> None:
    assert signed_log.vectors() == GOLDEN


def test_case_32_golden_log_counts_for_the_server_as_it_says() -> None:
    rule = TermRule(signatures=TopicSignatures(GOLDEN["topic"], KEYS.get))
    for line in GOLDEN["records"]:
        raw = raw_of(line)
        assert rule.admits(read_event(raw), raw) == line["counts"], line["note"]


def test_record_of_the_golden_log_is_verified_as_the_contract_says_step_by_step() -> None:
    raw = raw_of(GOLDEN["records"][2])
    *labels, (name, proof) = raw.headers
    assert name == "placet_signature"
    kid, size, index, path, signature = proof.decode().rsplit(".", 4)
    leaf = hashlib.sha256(b"\x00" + msgspec.msgpack.encode([raw.key, labels, raw.value])).digest()
    hashes = _unb64(path)
    steps = [hashes[i : i + 32] for i in range(0, len(hashes), 32)]
    root = merkle.root_of_path(leaf, int(index), int(size), steps)
    assert root is not None
    base = raw.offset - int(index)
    topic = GOLDEN["topic"].encode()
    place = len(topic).to_bytes(2, "big") + topic + raw.partition.to_bytes(4, "big") + base.to_bytes(8, "big")
    signed = b"placet.event-batch.v1\x00" + place + int(size).to_bytes(4, "big") + root
    KEYS[kid].verify(_unb64(signature), signed)


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
