"""The log's time here: by the broker's stamps and a clock that nobody sets, never by this machine's own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gateway.live.log_time import LogTime
from gateway.operations.running import check_has
from gateway.problems import Problem
from projections.folds.rows import Row
from schemas.refusals import Refusal

AT_MS = 1_800_000_000_000
LEASE_MS = 30_000


@dataclass
class Machine:
    """A machine whose clock is off; `ran_s` is how long it has run."""

    off_ms: int = 0
    ran_s: float = 1_000.0

    def running_s(self) -> float:
        return self.ran_s

    def wall_ms(self) -> int:
        return AT_MS + self.off_ms + int((self.ran_s - 1_000.0) * 1000)


@pytest.fixture(params=[0, -60_000, 60_000, -86_400_000])
def machine(request: pytest.FixtureRequest) -> Machine:
    return Machine(request.param)


@pytest.fixture
def time(machine: Machine) -> LogTime:
    found = LogTime(machine.running_s, machine.wall_ms)
    found.learn(found.moment(), AT_MS)
    return found


def consumed() -> Row:
    return {
        "status": "consumed",
        "attempt_id": "a1",
        "lease_until_ms": AT_MS + LEASE_MS,
        "run_deadline_at_ms": AT_MS + 900_000,
    }


def code_of(time: LogTime) -> Refusal | None:
    try:
        check_has(consumed(), "a1", time.now_ms, Refusal.ALREADY_CONSUMED)
    except Problem as problem:
        return problem.code
    return None


def test_case_04_lease_ends_by_the_logs_time_whatever_this_machines_clock_says(
    time: LogTime, machine: Machine
) -> None:
    machine.ran_s += 29
    assert code_of(time) is None
    machine.ran_s += 1
    assert code_of(time) is Refusal.NOT_RELEASED


def test_case_04_gateway_that_was_stopped_meanwhile_gives_no_leave_to_run(
    time: LogTime, machine: Machine
) -> None:
    """Stopped between the question and its answer: the broker's stamp is as old as the question at least."""
    asked = time.moment()
    machine.ran_s += 34
    time.learn(asked, AT_MS)
    assert code_of(time) is Refusal.NOT_RELEASED


def test_answer_to_an_older_question_changes_nothing(time: LogTime, machine: Machine) -> None:
    older = time.moment()
    machine.ran_s += 10
    time.learn(time.moment(), AT_MS + 10_000)
    time.learn(older, AT_MS - 5_000)
    assert time.now_ms() == AT_MS + 10_000


def test_nothing_is_said_of_a_lease_while_the_logs_time_is_not_known() -> None:
    assert code_of(LogTime()) is Refusal.UNAVAILABLE


@pytest.mark.parametrize(
    ("off_ms", "wrong"),
    [
        (0, ""),
        (2_000, ""),
        (-2_000, ""),
        (60_000, "its clock is 60.0 s ahead of Kafka's"),
        (-60_000, "its clock is 60.0 s behind Kafka's"),
    ],
)
def test_clock_that_is_off_further_than_deciders_bear_is_told(off_ms: int, wrong: str) -> None:
    machine = Machine(off_ms)
    time = LogTime(machine.running_s, machine.wall_ms)
    time.learn(time.moment(), AT_MS)
    assert time.wrong == wrong


def test_slow_answer_is_no_clock_that_is_off() -> None:
    machine = Machine()
    time = LogTime(machine.running_s, machine.wall_ms)
    asked = time.moment()
    machine.ran_s += 20
    time.learn(asked, AT_MS + 10_000)
    assert time.wrong == ""


def test_clock_that_was_set_right_is_told_no_longer() -> None:
    machine = Machine(60_000)
    time = LogTime(machine.running_s, machine.wall_ms)
    time.learn(time.moment(), AT_MS)
    machine.off_ms = 0
    time.learn(time.moment(), AT_MS)
    assert time.wrong == ""
