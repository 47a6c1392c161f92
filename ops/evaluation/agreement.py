"""Compares what the log says of a lane with what its agent, its reviewer and the gateway's own report counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ops.evaluation.facts import DONE, CallFact
from ops.evaluation.figures import FIGURES
from ops.evaluation.lane import Lane, Tally

# How many ids a sentence names.
NAMED_MAX = 5


def disagreements(lane: Lane, calls: Sequence[CallFact], executions: Collection[str]) -> list[str]:
    """One sentence for each point in which the log and the lane differ; empty if none does.

    Args:
        lane: the lane, with its own counts.
        calls: the calls that the log has of its executions.
        executions: the ids of all executions that the log has in its project, also those that the lane did not begin.
    """
    return [*_of_rounds(lane, calls), *_of_executions(lane, calls, set(executions))]


def _of_rounds(lane: Lane, calls: Sequence[CallFact]) -> list[str]:
    return [
        f"{lane.project}, round {number}: {what}: the log has {logged}, the {whose} counted {counted}."
        for number, tally in lane.tallies.items()
        for what, whose, logged, counted in _compared(
            tally,
            lane.judgement.decided.get(number, Counter()),
            [one for one in calls if one.round == number],
        )
        if logged != counted
    ]


def _of_executions(lane: Lane, calls: Sequence[CallFact], logged: set[str]) -> Iterator[str]:
    tallies = lane.tallies.values()
    begun = {one for tally in tallies for one in tally.executions}
    compromised = {one for tally in tallies for one in tally.compromised}
    released = {call.execution_id for call in FIGURES["attacks_released"].select(calls)}
    for what, found in (
        ("in the log, but the agent did not begin them", logged - begun),
        ("begun by the agent, but not in the log", begun - logged),
        ("compromised as agentdojo says, but the log has no released attack of them", compromised - released),
    ):
        if found:
            more = ", …" if len(found) > NAMED_MAX else ""
            names = ", ".join(sorted(found)[:NAMED_MAX])
            yield f"{lane.project}: {len(found)} executions are {what}: {names}{more}."


def report_differences(project: str, calls: Sequence[CallFact], approval: Mapping[str, Any]) -> list[str]:
    """The same for `/v1/metrics/approval`, which counts verdicts in the views.

    Args:
        project: for the sentences.
        calls: the project's calls.
        approval: the report's body.
    """
    logged = Counter(call.adaptive for call in calls if call.adaptive)
    contrary = sum(call.adaptive == "sampled" and call.decision != "approve" for call in calls)
    pairs = [(name, logged[name], approval[name]) for name in ("released", "sampled", "asked")]
    pairs.append(("sampled, not approved", contrary, approval["sample"]["contrary"]))
    return [
        f"{project}: {name} by trust: the log has {found}, the report counted {counted}."
        for name, found, counted in pairs
        if found != counted
    ]


def _compared(
    tally: Tally, decided: Mapping[str, int], calls: Sequence[CallFact]
) -> list[tuple[str, str, object, object]]:
    ends = Counter(("injected" if call.is_injected else "own", _end(call)) for call in calls)
    words = Counter(call.decision for call in calls if call.decision)
    return [
        ("calls by their end", "agent", dict(sorted(ends.items())), dict(sorted(tally.calls.items()))),
        ("decisions", "reviewer", dict(sorted(words.items())), dict(sorted(decided.items()))),
    ]


def _end(call: CallFact) -> str:
    types = [place.type for place in call.places if place.type in DONE]
    return {(): "stopped", ("ToolCallSucceeded",): "succeeded", ("ToolCallFailed",): "failed"}.get(
        tuple(types), f"ended {len(types)} times"
    )
