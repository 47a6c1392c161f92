"""The published vector of a signed log: python -m tests.golden.signed_log writes it; it is never rewritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import SigningKey, key_id, raw_public
from schemas.event_signatures import ANYWHERE, EventSigner
from schemas.events.executions import ExecutionPaused, ExecutionResumed
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.record import EventMeta, OutRecord

FILE = Path(__file__).parent / "signed_log.json"
TOPIC, PARTITION = "placet.executions", 3
SEED = bytes(range(32))


def vectors() -> dict[str, Any]:
    """A claim, a signed batch of three, and what a forger would add; with which of them count."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    event_signer = EventSigner(SigningKey(key_id(key.public_key()), key))
    claim = _event(WriterClaimed(claim_id="claim", after=-1, worker="w"), -1, 0, b"_log/3")
    batch = [
        _event(ExecutionPaused(reason="lunch", by="rita"), 0, 2),
        _event(ExecutionResumed(by="rita", feedback=""), 0, 3),
        _event(ExecutionPaused(reason="é", by="rita"), 0, 4),
    ]
    signed = [
        *event_signer.sign(TOPIC, PARTITION, ANYWHERE, [claim]),
        *event_signer.sign(TOPIC, PARTITION, 1, batch),
    ]
    forged = [
        ("unsigned, in the term in force", _event(ExecutionResumed(by="mallory", feedback=""), 0, 5)),
        ("a copy of the record at offset 2", signed[2]),
        ("an unsigned claim after the one in force", _event(_rival(), 0, 0, b"_log/3")),
    ]
    (last,) = event_signer.sign(TOPIC, PARTITION, 7, [_event(ExecutionResumed(by="rita", feedback=""), 0, 5)])
    lines = [(True, "signed for its place", record) for record in signed]
    lines += [(False, note, record) for note, record in forged]
    lines.append((True, "the claim at offset 0 is still in force", last))
    return {
        "topic": TOPIC,
        "partition": PARTITION,
        "public_keys": {event_signer.key.kid: raw_public(key.public_key()).hex()},
        "records": [
            {"offset": offset, "counts": counts, "note": note, **_as_text(record)}
            for offset, (counts, note, record) in enumerate(lines)
        ],
    }


def _rival() -> WriterClaimed:
    return WriterClaimed(claim_id="rival", after=0, worker="mallory")


def _event(body: Any, term: int, version: int, key: bytes = b"acme/default/run") -> OutRecord:
    meta = EventMeta(f"e{version}", 1_700_000_000_000 + version, term, version, "c", "", "acme", 7)
    return event_record(body, meta, key)


def _as_text(record: OutRecord) -> dict[str, Any]:
    headers = [[name, value.decode()] for name, value in record.headers]
    return {"key": record.key.decode(), "headers": headers, "value_hex": record.value.hex()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
