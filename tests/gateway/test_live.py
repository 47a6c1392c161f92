from __future__ import annotations

import asyncio

import pytest

from gateway.live.cursor import Vector
from gateway.live.live import DEFINITIONS_LANE, Live, groups_of
from gateway.live.outcome import Outcome
from gateway.live.waiters import Wait, Waited
from gateway.problems import Problem
from gateway.service.live_state import until_read
from gateway.shares.work import LONG_MESSAGE_S
from schemas.events.log import DefinitionsAdopted, WriterAlive
from schemas.refusals import Refusal
from tests.gateway.facts import (
    HELD_CALL,
    Partition,
    decided,
    held,
    key_of,
    new_live,
    proposed,
    refused,
    released,
    started,
    verdict,
)

KEY = key_of("e1")


def test_groups_of_events_of_one_command_stand_together() -> None:
    partition = Partition(new_live()[0])
    one = partition.events(KEY, "one", HELD_CALL)
    two = partition.events(KEY, "two", [decided(), released()])
    groups = groups_of(1, [*one, *two])
    assert [(group.command_id, len(group.facts)) for group in groups] == [("one", 3), ("two", 2)]


def test_take_folds_call_hold_and_execution() -> None:
    live, _ = new_live()
    partition = Partition(live)
    partition.write(KEY, "start", started())
    partition.write(KEY, "propose", *HELD_CALL)
    call, hold = live.cache.calls.get((KEY, "c1")), live.cache.holds.get("h1")
    execution = live.cache.executions.get(KEY)
    assert call is not None
    assert hold is not None
    assert execution is not None
    assert (call["status"], hold["status"], execution["state"]) == ("held", "open", "waiting_approval")
    partition.write(KEY, "decide", decided(), released())
    assert [row["hold_id"] for row in live.cache.open_holds("acme", "books")] == []
    assert (live.cache.calls.get((KEY, "c1")) or {})["status"] == "released"
    assert (live.cache.executions.get(KEY) or {})["state"] == "running"


def test_open_work_is_of_one_execution_and_is_forgotten_with_it() -> None:
    live, _ = new_live()
    partition = Partition(live)
    assert live.cache.open_work(KEY) == ([], [])
    partition.write(KEY, "propose", started(), *HELD_CALL)
    partition.write(key_of("e2"), "propose-2", started(), *HELD_CALL[:2])
    (call,), (hold,) = live.cache.open_work(KEY)
    assert (call["call_id"], call["status"], hold["hold_id"]) == ("c1", "held", "h1")
    assert [len(rows) for rows in live.cache.open_work(key_of("e2"))] == [1, 0]
    partition.write(KEY, "decide", decided(), released())
    (call,), holds = live.cache.open_work(KEY)
    assert (call["status"], holds) == ("released", [])
    live.cache.put_call(KEY, {**call, "status": "succeeded"})
    assert live.cache.open_work(KEY) == ([], [])
    assert KEY not in live.cache._open_of


def test_take_of_a_large_held_call_is_told_with_who_asked_for_it() -> None:
    live, _ = new_live()
    took: list[tuple[tuple[str, str], float]] = []
    live.took = lambda owner, seconds: took.append((owner, seconds))
    numbers = f'{{"a":[{",".join(["1.5"] * 20_000)}]}}'
    call = proposed().model_copy(update={"arguments": numbers})
    Partition(live).write(KEY, "propose", started(), call, verdict(), held())
    assert [owner for owner, _ in took] == [("acme", held().requester)]
    assert took[0][1] > LONG_MESSAGE_S


def test_take_open_holds_of_another_project_stay_apart() -> None:
    live, _ = new_live()
    Partition(live).write(key_of("e1", tenant="other"), "p", started(), *HELD_CALL)
    assert live.cache.open_holds("acme", "books") == []
    assert len(live.cache.open_holds("other", "books")) == 1


def test_take_whoever_waits_gets_the_first_trace_after_it_was_folded() -> None:
    live, _ = new_live()
    answers: list[tuple[Outcome | Problem | None, str]] = []

    def answered(outcome: Outcome | Problem | None) -> None:
        row = live.cache.calls.get((KEY, "c1"))
        answers.append((outcome, "" if row is None else row["status"]))

    wait = Wait(Waited("propose", "body"), KEY, 1, "acme", "books", until=1e9, look_at=1e9)
    wait.answered += [answered, answered]
    live.waiters.add(wait)
    partition = Partition(live)
    partition.write(KEY, "start", started())
    partition.write(KEY, "propose", *HELD_CALL)
    assert [status for _, status in answers] == ["held", "held"]
    assert isinstance(answers[0][0], Outcome)
    assert len(live.waiters) == 0


def test_take_refusal_after_an_expiry_is_the_answer() -> None:
    live, _ = new_live()
    answers: list[Outcome | Problem | None] = []
    wait = Wait(
        Waited("consume", "body"), KEY, 1, "acme", "books", until=1e9, look_at=1e9, answered=[answers.append]
    )
    live.waiters.add(wait)
    Partition(live).write(KEY, "consume", verdict(), held(hold_id="h2"), refused("not_released"))
    outcome = answers[0]
    assert isinstance(outcome, Outcome)
    assert outcome.refused is not None
    assert outcome.refused.code is Refusal.NOT_RELEASED


def waiting(live: Live, digest: str) -> list[Outcome | Problem | None]:
    """The answers of somebody who waits for a body under the id `same`."""
    answers: list[Outcome | Problem | None] = []
    name = Waited("same", digest)
    live.waiters.add(Wait(name, KEY, 1, "acme", "books", until=1e9, look_at=1e9, answered=[answers.append]))
    return answers


def code_of(answers: list[Outcome | Problem | None]) -> str:
    (answer,) = answers
    if isinstance(answer, Problem):
        return answer.code
    assert answer is not None
    return "accepted" if answer.refused is None else answer.refused.code


def test_case_26_take_two_bodies_under_one_id_only_the_first_is_accepted() -> None:
    live, _ = new_live()
    first, second = waiting(live, "one"), waiting(live, "two")
    partition = Partition(live)
    partition.write(KEY, "same", *HELD_CALL, digest="one")
    partition.write(KEY, "same", refused("idempotency_key_reused"), digest="two")

    assert (code_of(first), code_of(second)) == ("accepted", "idempotency_key_reused")
    assert len(live.waiters) == 0


def test_case_26_take_both_traces_of_one_id_in_one_batch_are_two_answers() -> None:
    live, _ = new_live()
    first, second = waiting(live, "one"), waiting(live, "two")
    partition = Partition(live)
    events = partition.events(KEY, "same", HELD_CALL, "one")
    events += partition.events(KEY, "same", [refused("idempotency_key_reused")], "two")
    live.take(1, events, events[-1].offset + 1)

    assert (code_of(first), code_of(second)) == ("accepted", "idempotency_key_reused")


def test_case_26_take_refusal_of_another_body_leaves_the_repeat_of_the_first_waiting() -> None:
    """What was decided before the tail began is found in the views, not contradicted by the loser's refusal."""
    live, _ = new_live()
    repeat = waiting(live, "one")
    Partition(live).write(KEY, "same", refused("idempotency_key_reused"), digest="two")

    assert repeat == []
    assert len(live.waiters) == 1


def test_take_records_of_the_log_itself_are_no_rows() -> None:
    live, _ = new_live()
    adopted = DefinitionsAdopted(through_offset=5, through_record_id="r", through_term=0, versions={})
    Partition(live, 1).write(b"_log/1", "", WriterAlive(commands_through=3), adopted)
    assert live.adopted == [-1, 5, -1]
    assert live.missing_adoptions(5) == [0, 2]
    assert live.position.offsets[2] == 2


def test_take_second_proposal_of_a_call_is_its_revision() -> None:
    live, _ = new_live()
    Partition(live).write(KEY, "edit", started(), proposed(), proposed(revision=2))
    assert (live.cache.calls.get((KEY, "c1")) or {})["revision"] == 2
    assert (live.cache.executions.get(KEY) or {})["calls"] == 1


async def test_reached_waits_for_the_tail_and_gives_up_in_time() -> None:
    live, _ = new_live()
    partition = Partition(live)
    wanted = Vector((-1, 1, -1, -1), (0,) * 4)
    assert not await live.reached(wanted, 0.01)
    waiting = asyncio.create_task(live.reached(wanted, 5.0))
    await asyncio.sleep(0)
    partition.write(KEY, "start", started())
    assert await waiting


@pytest.mark.parametrize("status", ["held", "released"])
async def test_watch_until_wakes_only_when_it_holds(status: str) -> None:
    live, _ = new_live()
    partition = Partition(live)
    partition.write(KEY, "propose", started(), *HELD_CALL)

    def is_so() -> bool:
        return bool((live.cache.calls.get((KEY, "c1")) or {})["status"] == status)

    waiting = asyncio.create_task(live.watch.until((KEY, "c1"), is_so, 5.0))
    await asyncio.sleep(0)
    partition.write(KEY, "decide", decided(), released())
    assert await waiting
    assert not live.watch._by_subject


async def test_until_read_patience_over_is_no_reason_to_serve_what_was_not_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    live, _ = new_live()
    ends = [0] * len(live.read_through)
    ends[DEFINITIONS_LANE] = 3
    waiting = asyncio.create_task(until_read(live, ends, lambda: False, patience_s=0.01))
    while len(caplog.records) < 2:
        await asyncio.sleep(0.005)
    live.take(DEFINITIONS_LANE, [], 2)
    await asyncio.sleep(0.03)
    assert not waiting.done()
    live.take(DEFINITIONS_LANE, [], 3)
    await asyncio.wait_for(waiting, 1.0)


async def test_until_read_tail_that_failed_is_waited_for_no_longer() -> None:
    live, _ = new_live()
    await asyncio.wait_for(until_read(live, [9] * len(live.read_through), lambda: True), 1.0)
