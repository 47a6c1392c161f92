from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.asking import asker as asking
from gateway.asking.asker import CommandIds, CommandName, name_of
from gateway.live import outcome
from gateway.live.outcome import Outcome, Refused
from gateway.live.waiters import Wanted
from gateway.operations.plan import refusal_of
from gateway.problems import Problem
from schemas.events.executions import CommandAbandoned
from schemas.ids import derived_id
from schemas.refusals import Refusal
from schemas.topics import partition_of
from tests.gateway.asking_bench import (
    BODY,
    BOT,
    CHOSEN,
    IDS,
    KEY,
    KEYED,
    OTHER,
    Bench,
    digest_of,
    open_bench,
)
from tests.gateway.facts import refused, released


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(asking, "LOOK_AFTER_S", 0.01)
    async with open_bench() as found:
        yield found


async def until_looked_up(bench: Bench) -> None:
    """Return once the views have been asked, and what they answered was taken."""
    looked = asyncio.Event()
    answers = bench.past.answers

    async def looking(wanted: list[Wanted]) -> dict[Wanted, Outcome]:
        looked.set()
        return await answers(wanted)

    bench.past.answers = looking  # type: ignore[method-assign]
    await asyncio.wait_for(looked.wait(), 5)
    await asyncio.sleep(0)


async def test_answer_first_trace_answers(bench: Bench) -> None:
    asked = bench.ask()
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    outcome = await asked
    assert outcome is not None
    assert outcome.refused is None


async def test_answer_in_time_is_none_only_for_what_the_log_has_taken(bench: Bench) -> None:
    assert await bench.ask(timeout_s=0.05) is None
    bench.topic.hangs = True
    with pytest.raises(Problem, match="Kafka has not accepted the command"):
        await bench.ask(OTHER, CHOSEN, timeout_s=0.05)


async def test_answer_asked_twice_at_once_sends_once(bench: Bench) -> None:
    first, second = bench.ask(), bench.ask()
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    assert await first == await second
    assert len(bench.topic.appended) == 1


async def test_answer_repeat_is_given_from_memory_without_sending(bench: Bench) -> None:
    asked = bench.ask()
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, refused("digest_mismatch"), digest=digest_of())
    await asked
    again = await bench.ask()
    assert again is not None
    assert again.old
    assert again.refused is not None
    assert len(bench.topic.appended) == 1


async def test_answer_same_key_other_body_is_refused_while_under_way_and_after(bench: Bench) -> None:
    asked, under_way = bench.ask(), bench.ask(OTHER)
    (command_id, same_id) = await bench.sent(2)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    await asked
    with pytest.raises(Problem) as told_under_way:
        await under_way
    with pytest.raises(Problem) as after:
        await bench.ask(OTHER)
    assert told_under_way.value.code is after.value.code is Refusal.IDEMPOTENCY_KEY_REUSED
    assert same_id == command_id
    assert len(bench.topic.appended) == 2


async def test_case_26_answer_the_first_body_is_answered_though_the_other_asked_here_first(
    bench: Bench,
) -> None:
    """Which of two bodies came first is for the log to say: another gateway may have sent the other one before."""
    late, rightful = bench.ask(OTHER), bench.ask()
    (command_id, _) = await bench.sent(2)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    outcome = await rightful
    with pytest.raises(Problem) as caught:
        await late
    assert outcome is not None
    assert outcome.refused is None
    assert caught.value.code is Refusal.IDEMPOTENCY_KEY_REUSED


async def test_answer_repeat_after_a_restart_comes_from_the_views(bench: Bench) -> None:
    command_id = IDS.id_of(KEYED, "", 0)
    bench.past.known[command_id] = Outcome(digest_of(), KEY, None, old=True)
    outcome = await bench.ask()
    assert outcome is not None
    assert outcome.old


async def test_answer_reused_key_after_a_restart_is_refused(bench: Bench) -> None:
    command_id = IDS.id_of(KEYED, "", 0)
    bench.past.known[command_id] = Outcome(digest_of(OTHER), KEY, None, old=True)
    with pytest.raises(Problem) as caught:
        await bench.ask()
    assert caught.value.code is Refusal.IDEMPOTENCY_KEY_REUSED


async def test_answer_refused_body_with_a_chosen_id_is_asked_anew(bench: Bench) -> None:
    first = bench.ask(name=CHOSEN)
    (first_id,) = await bench.sent(1)
    bench.partition.write(KEY, first_id, refused("not_released"), digest=digest_of())
    await first
    second = bench.ask(name=CHOSEN)
    _, second_id = await bench.sent(2)
    assert second_id != first_id
    bench.partition.write(KEY, second_id, released(), digest=digest_of())
    outcome = await second
    assert outcome is not None
    assert outcome.refused is None
    third = await bench.ask(name=CHOSEN)
    assert third is not None
    assert len(bench.topic.appended) == 2


@pytest.mark.parametrize("code", ["quota", "unavailable"])
async def test_answer_keyed_that_was_told_to_ask_again_is_asked_anew_with_the_same_key(
    bench: Bench, code: str
) -> None:
    """Whoever waits for `retry_after` and repeats what it sent gets an answer of then, whatever was said before."""
    first = bench.ask()
    (first_id,) = await bench.sent(1)
    bench.partition.write(KEY, first_id, refused(code), digest=digest_of())
    await first
    with pytest.raises(Problem) as other_body:
        await bench.ask(OTHER)
    assert other_body.value.code is Refusal.IDEMPOTENCY_KEY_REUSED

    second = bench.ask()
    _, second_id = await bench.sent(2)
    assert second_id != first_id
    bench.partition.write(KEY, second_id, released(), digest=digest_of())
    await second
    third = await bench.ask()

    assert third is not None
    assert third.refused is None
    assert len(bench.topic.appended) == 2


@pytest.mark.parametrize("name", [KEYED, CHOSEN])
async def test_case_25_answer_that_deciders_ended_of_the_command_stands_for_each_repeat(
    bench: Bench, name: CommandName
) -> None:
    """Asked anew it would end as many again."""
    first = bench.ask(name=name)
    (command_id,) = await bench.sent(1)
    given_up = CommandAbandoned(command="ConsumeGrant", command_offset=7, attempts=3)
    bench.partition.write(KEY, command_id, given_up, digest=digest_of())
    answers = [await first, await bench.ask(name=name)]

    assert len(bench.topic.appended) == 1
    for answer in answers:
        assert answer is not None
        problem = refusal_of(answer)
        assert problem is not None
        assert problem.code is Refusal.UNAVAILABLE
        assert "retry_after" not in problem.fields, "it says when to ask again"


async def test_case_25_answer_that_deciders_ended_of_the_command_stands_after_a_restart(bench: Bench) -> None:
    asked = bench.ask()
    (command_id,) = await bench.sent(1)
    bench.past.known[command_id] = Outcome(digest_of(), KEY, outcome.given_up(), old=True)
    answer = await asked

    assert answer is not None
    assert answer.refused == outcome.given_up()
    assert len(bench.topic.appended) == 1


async def test_answer_keyed_told_to_ask_again_before_a_restart_is_asked_anew(bench: Bench) -> None:
    asked = bench.ask()
    (first_id,) = await bench.sent(1)
    bench.past.known[first_id] = Outcome(digest_of(), KEY, Refused(Refusal.QUOTA, "full"), old=True)
    _, second_id = await bench.sent(2)
    bench.partition.write(KEY, second_id, released(), digest=digest_of())
    outcome = await asked

    assert outcome is not None
    assert outcome.refused is None


async def test_answer_refusal_in_the_views_of_a_chosen_id_is_asked_anew(bench: Bench) -> None:
    asked = bench.ask(name=CHOSEN)
    (first_id,) = await bench.sent(1)
    no = Refused(Refusal.NOT_RELEASED, "not yet")
    bench.past.known[first_id] = Outcome(digest_of(), KEY, no, old=True)
    _, second_id = await bench.sent(2)
    bench.partition.write(KEY, second_id, released(), digest=digest_of())
    outcome = await asked
    assert outcome is not None
    assert outcome.refused is None


async def test_answer_refusal_that_the_views_have_before_the_tail_is_this_askings_own_and_not_asked_anew(
    bench: Bench,
) -> None:
    asked = bench.ask(name=CHOSEN)
    (command_id,) = await bench.sent(1)
    ahead = bench.live.read_through[1 + partition_of(KEY, 3)]
    no = Refused(Refusal.NOT_RELEASED, "not yet")
    bench.past.known[command_id] = Outcome(digest_of(), KEY, no, last_offset=ahead, old=True)
    await until_looked_up(bench)
    bench.partition.write(KEY, command_id, refused("not_released"), digest=digest_of())
    outcome = await asked

    assert outcome is not None
    assert outcome.refused is not None
    assert len(bench.topic.appended) == 1


@pytest.mark.parametrize("name", [KEYED, CHOSEN, CommandName(None)], ids=["keyed", "chosen", "fresh"])
async def test_answer_acceptance_that_the_views_have_before_the_tail_is_told_once_the_tail_has_it(
    bench: Bench, name: CommandName
) -> None:
    """Told before, a consumption would be shown a call that is released still, and refused."""
    asked = bench.ask(name=name)
    (command_id,) = await bench.sent(1)
    ahead = bench.live.read_through[1 + partition_of(KEY, 3)]
    bench.past.known[command_id] = Outcome(digest_of(), KEY, None, last_offset=ahead, old=True)
    await until_looked_up(bench)
    assert not asked.done()
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    outcome = await asked

    assert outcome is not None
    assert (outcome.refused, outcome.old) == (None, False)
    assert len(bench.topic.appended) == 1


async def test_answer_duplicate_is_no_refusal_to_ask_anew(bench: Bench) -> None:
    first = bench.ask(name=CHOSEN)
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, refused("duplicate"), digest=digest_of())
    await first
    await bench.ask(name=CHOSEN)
    assert len(bench.topic.appended) == 1


async def test_answer_nobody_answers_in_time_gives_none_and_never_a_guess(bench: Bench) -> None:
    assert await bench.ask(timeout_s=0.05) is None
    assert len(bench.live.waiters) == 0


async def test_answer_command_that_could_not_be_sent_is_unavailable(bench: Bench) -> None:
    bench.topic.fails = True
    with pytest.raises(Problem) as caught:
        await bench.ask()
    assert caught.value.code is Refusal.UNAVAILABLE


@pytest.mark.parametrize(
    ("change", "code", "detail"),
    [
        ({"digest": "d" * 129}, Refusal.TOO_LARGE, "digest is limited to 128 characters"),
        ({"attempt_id": "a" * 129}, Refusal.INVALID, "attempt_id must be 1 to 128 of A-Za-z0-9._:-"),
    ],
)
async def test_case_37_answer_word_over_its_limit_or_of_another_form_is_refused_without_being_sent(
    bench: Bench, change: dict[str, str], code: Refusal, detail: str
) -> None:
    """By the command's own limits and forms, whatever a door's body allows."""
    with pytest.raises(Problem) as refusal:
        await bench.ask(BODY.model_copy(update=change))

    assert (refusal.value.code, refusal.value.detail) == (code, detail)
    assert bench.topic.appended == []


async def test_fresh_names_never_repeat(bench: Bench) -> None:
    name = name_of(BOT, "/route", None)
    assert IDS.id_of(name, "d", 0) != IDS.id_of(name, "d", 0)


def test_name_of_keys_are_the_subjects_own() -> None:
    other = BOT.model_copy(update={"subject": "other"})
    of_bot = name_of(BOT, "/r", "k")
    assert IDS.id_of(of_bot, "d", 0) != IDS.id_of(name_of(other, "/r", "k"), "d", 0)
    assert IDS.id_of(of_bot, "d", 0) == IDS.id_of(of_bot, "e", 0)
    assert IDS.id_of(of_bot, "d", 0) != IDS.id_of(name_of(BOT, "/s", "k"), "d", 0)


@pytest.mark.parametrize("key", ["k", None])
@pytest.mark.parametrize("change", [{"subject": "other"}, {"agent": "another"}, {"project": "books-2"}])
def test_command_of_another_caller_is_never_answered_as_ones_own_was(
    key: str | None, change: dict[str, str]
) -> None:
    other = BOT.model_copy(update=change)
    ids = [
        IDS.id_of(name_of(actor, "/v1/requests", key, ("e", "r")), "same body", 0) for actor in (BOT, other)
    ]
    assert ids[0] != ids[1]


def test_case_29_resources_that_gateways_name_are_known_to_nobody_before() -> None:
    parts = ("acme", "books", "/v1/requests", "task-1", "bot")
    one, two = CommandIds.of_gateways(b"one"), CommandIds.of_gateways(b"two")
    assert one.named(*parts) == CommandIds.of_gateways(b"one").named(*parts)
    assert (
        len({one.named(*parts), two.named(*parts), derived_id(*parts), derived_id("resource", *parts)}) == 4
    )


def test_case_29_ids_are_those_of_gateways_that_share_the_secret_and_nobody_elses() -> None:
    name = name_of(BOT, "/r", "k")
    assert CommandIds.of_gateways(b"one").id_of(name, "d", 0) == CommandIds.of_gateways(b"one").id_of(
        name, "d", 0
    )
    assert CommandIds.of_gateways(b"one").id_of(name, "d", 0) != CommandIds.of_gateways(b"two").id_of(
        name, "d", 0
    )
