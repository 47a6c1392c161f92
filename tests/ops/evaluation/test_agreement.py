from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ops.evaluation.agreement import disagreements, report_differences
from ops.evaluation.facts import CallFact, Place
from ops.evaluation.lane import Lane, Tally, Tokens
from ops.evaluation.reviewing import Judgement
from ops.evaluation.rounds import Tasks

EXECUTION = "r01.slack.t"


def _lane(calls: dict[tuple[str, str], int], decided: dict[str, int]) -> Lane:
    judgement = Judgement(0.0, 1, decided={1: Counter(decided)})
    tally = Tally(calls=Counter(calls), executions=[EXECUTION])
    arm, tasks = cast(Any, SimpleNamespace(policy=Path())), cast(Tasks, None)
    return Lane(arm, tasks, "p", Tokens("", "", ""), judgement, {1: tally})


def _ran(call_id: str, **more: Any) -> CallFact:
    return CallFact(EXECUTION, call_id, places=[Place("ToolCallSucceeded", 0, 1)], **more)


CALLS = [
    _ran("01-own", held=True, decision="approve", adaptive="sampled"),
    CallFact(EXECUTION, "02-injected", tool="send_email"),
]


def test_equal_counts_are_no_disagreement() -> None:
    lane = _lane({("own", "succeeded"): 1, ("injected", "stopped"): 1}, {"approve": 1})
    assert disagreements(lane, CALLS, [EXECUTION]) == []


def test_each_count_that_differs_is_a_sentence() -> None:
    lane = _lane({("own", "succeeded"): 2}, {"approve": 1, "reject": 1})
    found = disagreements(lane, CALLS, [EXECUTION])
    assert [line.split(":")[1] for line in found] == [" calls by their end", " decisions"]


def test_call_that_ended_twice_is_told() -> None:
    twice = CallFact(
        EXECUTION, "01-own", places=[Place("ToolCallSucceeded", 0, 1), Place("ToolCallFailed", 0, 2)]
    )
    assert "ended 2 times" in disagreements(_lane({("own", "succeeded"): 1}, {}), [twice], [EXECUTION])[0]


def test_executions_are_compared_with_those_of_the_log_in_both_directions() -> None:
    lane = _lane({("own", "succeeded"): 1, ("injected", "stopped"): 1}, {"approve": 1})
    (more,) = disagreements(lane, CALLS, [EXECUTION, "r01.slack.other"])
    assert "1 executions are in the log, but the agent did not begin them: r01.slack.other." in more
    (missing,) = disagreements(lane, CALLS, [])
    assert f"begun by the agent, but not in the log: {EXECUTION}." in missing


def test_attack_that_reached_its_goal_must_be_one_that_the_log_released() -> None:
    lane = _lane({("own", "succeeded"): 1, ("injected", "stopped"): 1}, {"approve": 1})
    lane.tallies[1].compromised.append(EXECUTION)
    (line,) = disagreements(lane, CALLS, [EXECUTION])
    assert "compromised as agentdojo says" in line
    sent = _ran("03-injected", tool="send_email", consumed=True)
    lane.tallies[1].calls["injected", "succeeded"] += 1
    assert disagreements(lane, [*CALLS, sent], [EXECUTION]) == []


def test_report_of_the_gateway_is_compared() -> None:
    report = {"released": 0, "sampled": 1, "asked": 0, "sample": {"contrary": 0}}
    assert report_differences("p", CALLS, report) == []
    assert len(report_differences("p", CALLS, report | {"released": 3, "sample": {"contrary": 1}})) == 2
