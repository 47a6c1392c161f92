"""The variables that a process keeps until its run ends."""

import asyncio

import pytest

import placet
from placet import taken_variables
from placet.taken_variables import KEPT_S, TakenVariables
from tests.sdk.desk import Desk
from tests.sdk.runs import running


async def test_values_are_those_of_one_request_of_one_run_until_it_is_forgotten() -> None:
    taken = TakenVariables()
    taken.keep("run", "first", {"KEY": "1"})
    taken.keep("run", "second", {"KEY": "2"})
    taken.keep("other", "first", {"KEY": "3"})
    assert [taken.of("run", "first"), taken.of("run", "second")] == [{"KEY": "1"}, {"KEY": "2"}]
    taken.forget("run")
    taken.forget("run")
    assert [taken.of("run", "first"), taken.of("other", "first")] == [None, {"KEY": "3"}]
    taken.drop("other", "first")
    taken.drop("run", "first")
    assert taken.of("other", "first") is None


async def test_values_are_as_they_were_delivered_whatever_the_caller_did_with_them() -> None:
    taken, given = TakenVariables(), {"KEY": "1"}
    taken.keep("run", "first", given)
    given.clear()
    again = dict(taken.of("run", "first") or {})
    again["PATH"] = "/bin"
    assert taken.of("run", "first") == {"KEY": "1"}


async def test_values_are_dropped_after_a_day_also_if_nobody_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(taken_variables, "KEPT_S", 0.05)
    monkeypatch.setattr(taken_variables, "DROPPED_AFTER_S", 0.01)
    taken = TakenVariables()
    taken.keep("run", "first", {"KEY": "1"})
    assert taken._runs
    async with asyncio.timeout(10):
        while taken._runs:
            await asyncio.sleep(0.01)


async def test_values_of_a_run_that_never_ends_are_dropped_after_a_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("placet.clock.now", lambda: now)
    taken = TakenVariables()
    taken.keep("run", "first", {"KEY": "1"})
    now = KEPT_S - 1
    taken.keep("other", "first", {"KEY": "2"})
    assert taken.of("run", "first") == {"KEY": "1"}
    now = KEPT_S
    assert taken.of("other", "first") == {"KEY": "2"}
    assert taken.of("run", "first") is None


async def test_runs_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_variables, "RUNS_MAX", 2)
    taken = TakenVariables()
    for run in ("a", "b", "a", "c"):
        taken.keep(run, "first", {"KEY": run})
    assert [taken.of(run, "first") for run in "abc"] == [{"KEY": "a"}, None, {"KEY": "c"}]


async def test_run_whose_end_did_not_reach_the_gateway_still_has_its_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unreachable(*_: object) -> None:
        raise placet.Unreachable("no gateway")

    desk = Desk()
    async with running(desk) as run:
        taken = run.channel.taken
        taken.keep(run.id, "first", {"KEY": "1"})
        with monkeypatch.context() as away:
            away.setattr("placet.execution.AsyncExecutions.complete", unreachable)
            with pytest.raises(placet.Unreachable):
                await run.complete()
        assert taken.of(run.id, "first") == {"KEY": "1"}
        await run.complete()
        assert taken.of(run.id, "first") is None
