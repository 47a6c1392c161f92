"""Golden logs with zombies in them: which records count, for this server's readers and for the SDK's.

Each line of `log/*.jsonl` is a record of one events partition, with `accepted` as the term rule has it and a
`note` that says why. A first line with `claim_in_force` is where a reader starts that comes from the middle.
These files are part of the published contract (docs/log-contract.md): a client in any language can run them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placet.log import NO_CLAIM, stamp_of, step
from schemas import codec
from schemas.events.log import WriterClaimed
from schemas.headers import event_record, read_event
from schemas.record import EventMeta, RawRecord
from schemas.term import TermRule

LOGS = sorted((Path(__file__).parent / "log").glob("*.jsonl"))
Line = dict[str, Any]


def read_log(path: Path) -> tuple[int, list[Line]]:
    """The claim that a reader starts with, and the records."""
    lines: list[Line] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if "claim_in_force" in lines[0]:
        return lines[0]["claim_in_force"], lines[1:]
    return NO_CLAIM, lines


def raw_record(line: Line) -> RawRecord:
    """The line as bytes on a partition."""
    body = codec.MODELS[f"placet.events.{line['type']}"].model_validate(line["body"])
    meta = EventMeta(f"e-{line['offset']}", 0, line["term"], 1, "c", "", "acme")
    return RawRecord(0, line["offset"], 0, *event_record(body, meta, b"acme/default/run"))


def by_server(claim: int, records: list[RawRecord]) -> list[int]:
    """The offsets that count for the decider, the projector and the gateway."""
    rule = TermRule(claim)
    return [record.offset for record in records if rule.admits(read_event(record))]


def by_sdk(claim: int, records: list[RawRecord]) -> list[int]:
    """The offsets that count for a consumer with the SDK."""
    found = []
    for record in records:
        body = codec.decode(record.value)
        after = body.after if isinstance(body, WriterClaimed) else None
        counts, claim = step(claim, stamp_of(record.offset, dict(record.headers), after))
        if counts:
            found.append(record.offset)
    return found


@pytest.mark.parametrize("reader", [by_server, by_sdk])
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_golden_log_counts_exactly_the_accepted_records(
    path: Path, reader: Callable[[int, list[RawRecord]], list[int]]
) -> None:
    claim, lines = read_log(path)
    expected = [line["offset"] for line in lines if line["accepted"]]
    assert reader(claim, [raw_record(line) for line in lines]) == expected


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_golden_log_holds_what_must_not_count(path: Path) -> None:
    _, lines = read_log(path)
    assert {line["accepted"] for line in lines} == {True, False}
    assert [line["offset"] for line in lines] == sorted({line["offset"] for line in lines})


def test_golden_log_read_from_the_middle_without_its_claim_counts_nothing() -> None:
    _, lines = read_log(next(path for path in LOGS if path.stem == "reader_mid_log"))
    assert by_server(NO_CLAIM, [raw_record(line) for line in lines]) == []
