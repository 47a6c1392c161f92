from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gateway.asking import undecided as undecided_module
from gateway.asking.undecided import Undecided, row_or_proposal
from gateway.live.outcome import Outcome
from gateway.live.reader import Found, FoundAll, Named, Reader, Subject
from gateway.live.waiters import Wanted
from gateway.problems import Problem
from schemas.commands import ProposeToolCall
from schemas.record import Command, RawRecord
from schemas.refusals import Refusal
from schemas.topics import partition_of
from tests.domain.world import BOT
from tests.gateway.facts import HELD_CALL, Partition, key_of, new_live, refused, started

PARTITIONS = 3
KEY = key_of("e1")
HOME = partition_of(KEY, PARTITIONS)
CALL = Subject("call", "acme", "books", "e1", "c1")


class NoRows:
    """Views that have read everything and know of nothing."""

    async def find(self, subject: Subject) -> Found:
        return Found(None, dict.fromkeys(range(PARTITIONS), 1_000))

    async def requests(self, named: Named) -> FoundAll:
        raise AssertionError("nobody asks for a request")


@dataclass
class Meanwhile:
    """A look at the commands during which something else happens, and which finds nothing."""

    happens: Callable[[], Any]

    async def proposal(self, key: bytes, call_id: str) -> ProposeToolCall | None:
        self.happens()
        return None


@dataclass
class Records:
    """A partition of the commands that holds records of others only."""

    end: int
    read_from: list[int] = field(default_factory=list)

    async def bounds(self, lanes: Sequence[int]) -> dict[int, tuple[int, int]]:
        return dict.fromkeys(lanes, (0, self.end))

    async def read(self, places: Mapping[int, int]) -> AsyncGenerator[tuple[int, list[RawRecord]]]:
        for lane, start in places.items():
            self.read_from.append(start)
            yield lane, [RawRecord(lane, at, 0, b"other", b"", ()) for at in range(start, self.end)]


def _reader(live: Any) -> Reader:
    async def end_offsets() -> Sequence[int]:
        return [0] * (PARTITIONS + 1)

    return Reader(live, NoRows(), end_offsets, PARTITIONS)


def _undecided(live: Any, records: Records) -> Undecided:
    unused = cast(Any, None)
    return Undecided(cast(Any, records), live, unused, unused, PARTITIONS)


async def test_row_or_proposal_decided_between_the_two_looks_is_found() -> None:
    live, _ = new_live()
    partition = Partition(live, HOME)
    partition.write(KEY, "start", started())
    decided = Meanwhile(lambda: partition.write(KEY, "propose", *HELD_CALL))
    found = await row_or_proposal(_reader(live), decided, CALL)
    assert not isinstance(found, ProposeToolCall)
    assert found["status"] == "held"


async def test_row_or_proposal_neither_is_not_found() -> None:
    live, _ = new_live()
    with pytest.raises(Problem) as caught:
        await row_or_proposal(_reader(live), Meanwhile(lambda: None), CALL)
    assert caught.value.code is Refusal.NOT_FOUND


async def test_proposal_all_that_waits_was_read_there_is_none() -> None:
    live, _ = new_live()
    live.decided[HOME] = 99
    records = Records(100 + undecided_module.LOOK_BACK)
    assert await _undecided(live, records).proposal(KEY, "c1") is None
    assert records.read_from == [100]


async def test_proposal_more_waits_than_is_read_cannot_be_told() -> None:
    live, _ = new_live()
    live.decided[HOME] = 99
    records = Records(101 + undecided_module.LOOK_BACK)
    with pytest.raises(Problem) as caught:
        await _undecided(live, records).proposal(KEY, "c1")
    assert caught.value.code is Refusal.UNAVAILABLE


@dataclass
class Proposals:
    """Reads every record as one proposal, whoever wrote it."""

    key: bytes

    def read(self, raw: RawRecord) -> Command:
        body = ProposeToolCall(call_id="c1", tool="pay", arguments="{}")
        return Command(body, BOT, "propose", "", self.key, raw.partition, raw.offset, 0)


@dataclass
class OneAnswer:
    """Views that know of one command with the id, on one key."""

    key: bytes

    async def answers(self, wanted: list[Wanted]) -> dict[Wanted, Outcome]:
        return dict.fromkeys(wanted, Outcome("", self.key, None, old=True))


@pytest.mark.parametrize("answered", [KEY, key_of("e2")], ids=["the proposal's key", "another"])
async def test_proposal_is_answered_by_an_answer_on_its_own_key_only(answered: bytes) -> None:
    """Services use one command id in many executions."""
    live, _ = new_live()
    undecided = Undecided(
        cast(Any, Records(1)), live, cast(Any, Proposals(KEY)), OneAnswer(answered), PARTITIONS
    )
    raw = RawRecord(HOME, 0, 0, KEY, b"", ())
    found = await undecided._waiting(raw, "c1")
    assert (found is None) == (answered == KEY)


@pytest.mark.parametrize("answered", [KEY, key_of("e2")], ids=["the proposal's key", "another"])
async def test_proposal_is_answered_by_what_the_tail_read_on_its_own_key_only(answered: bytes) -> None:
    live, _ = new_live()
    Partition(live).write(answered, "propose", refused("not_found"), digest="")
    undecided = Undecided(
        cast(Any, Records(1)), live, cast(Any, Proposals(KEY)), OneAnswer(key_of("e3")), PARTITIONS
    )
    raw = RawRecord(HOME, 0, 0, KEY, b"", ())
    found = await undecided._waiting(raw, "c1")
    assert (found is None) == (answered == KEY)
