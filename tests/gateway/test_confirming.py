"""An acceptance from before the asking is no answer where it must hold now."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway.asking import asker as asking
from tests.gateway.asking_bench import KEY, Bench, digest_of, open_bench
from tests.gateway.facts import AT_MS, log_time, refused, released


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(asking, "LOOK_AFTER_S", 0.01)
    async with open_bench() as found:
        yield found


@pytest.mark.parametrize("said", ["duplicate", "not_released"])
async def test_case_04_acceptance_from_before_is_confirmed_where_it_must_hold_now(
    bench: Bench, said: str
) -> None:
    bench.live.time = log_time(AT_MS)
    first = bench.ask(anew=True)
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    accepted = await first
    assert accepted is not None
    assert not accepted.old, "decided after it was asked"

    again = bench.ask(anew=True)
    _, anew_id = await bench.sent(2)
    assert anew_id != command_id
    bench.partition.write(KEY, anew_id, refused(said), digest=digest_of())
    answer = await again

    assert answer is not None
    assert answer.refused is not None
    assert answer.refused.code == said


async def test_case_04_acceptance_that_the_tail_brings_late_is_confirmed_where_it_must_hold_now(
    bench: Bench,
) -> None:
    """It was decided before this asking, and what came after it has not been read here yet."""
    bench.live.time = log_time(AT_MS + 60_000)
    late = bench.ask(anew=True)
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    _, anew_id = await bench.sent(2)
    bench.partition.write(KEY, anew_id, refused("already_consumed"), digest=digest_of())
    answer = await late

    assert answer is not None
    assert answer.refused is not None
    assert answer.refused.code == "already_consumed"


async def test_case_04_acceptance_is_confirmed_while_the_logs_time_is_not_known(bench: Bench) -> None:
    asked = bench.ask(anew=True)
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    _, anew_id = await bench.sent(2)
    bench.partition.write(KEY, anew_id, refused("duplicate"), digest=digest_of())
    answer = await asked
    assert answer is not None
    assert answer.refused is not None


async def test_answer_first_refusal_of_a_key_stands_also_where_an_acceptance_is_confirmed(
    bench: Bench,
) -> None:
    first = bench.ask(anew=True)
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, refused("digest_mismatch"), digest=digest_of())
    for answer in (await first, await bench.ask(anew=True)):
        assert answer is not None
        assert answer.refused is not None
        assert answer.refused.code == "digest_mismatch"
    assert len(bench.topic.appended) == 1
