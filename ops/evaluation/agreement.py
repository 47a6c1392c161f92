"""Compares what the log says of a lane with what its agent, its reviewer and the gateway's own report counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ops.evaluation.facts import DONE, CallFact
from ops.evaluation.lane import Lane, Tally


def disagreements(lane: Lane, calls: Sequence[CallFact]) -> list[str]:
    """One sentence for each count in which the log and the lane differ; empty if none does."""
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
    executions = {call.execution_id for call in calls}
    return [
        ("calls by their end", "agent", dict(sorted(ends.items())), dict(sorted(tally.calls.items()))),
        ("decisions", "reviewer", dict(sorted(words.items())), dict(sorted(decided.items()))),
        ("executions without a call", "agent", executions - set(tally.executions), set()),
    ]


def _end(call: CallFact) -> str:
    types = [place.type for place in call.places if place.type in DONE]
    return {(): "stopped", ("ToolCallSucceeded",): "succeeded", ("ToolCallFailed",): "failed"}.get(
        tuple(types), f"ended {len(types)} times"
    )
