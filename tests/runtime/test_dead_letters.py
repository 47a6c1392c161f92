"""What a dead letter keeps of the record that could not be believed."""

from __future__ import annotations

import hashlib

from log.places import TopicPartition
from schemas.record import RawRecord
from services.runtime.dead_letters import dead_letter_record
from services.runtime.rounds import DeadLetter

TOKEN = b"eyJhbGciOiJFZERTQSJ9.payload.signature"


def test_letter_keeps_the_original_but_no_token_that_somebody_could_use() -> None:
    headers = (("ce_type", b"placet.commands.DecideHold"), ("placet_token", TOKEN), ("x", b"kept"))
    raw = RawRecord(2, 7, 1_000, b"acme/main/e1", b"value", headers)
    record = dead_letter_record(DeadLetter(raw, "unbelievable", "why"), TopicPartition("placet.commands", 2))
    found = dict(record.headers)
    assert TOKEN not in b"".join(found.values())
    assert found["original_placet_token"] == b"sha256:" + hashlib.sha256(TOKEN).hexdigest().encode()
    assert (found["original_ce_type"], found["original_x"]) == (b"placet.commands.DecideHold", b"kept")
    assert (record.key, record.value) == (raw.key, raw.value)
