"""The decision of a recorded run that a fork replaces, and what it puts in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ops.fork.errors import DecisionNotFoundError, NotReplaceableError
from ops.fork.recorded import Answered, RecordedCall, RecordedQuestion, Run, answered
from schemas.events import holds as h

Word = Literal["approve", "edit", "reject"]
LISTED_MAX = 10


@dataclass(frozen=True)
class Instead:
    """What the fork decides: `arguments` replace all of the call's in an edit, `reason` is for the agent.

    With `is_assumed`, `output` is what the tool is assumed to return if the call did not run with these arguments.
    """

    word: Word
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    is_assumed: bool = False
    output: Any = None


class Point(NamedTuple):
    """The decision to replace: the call's, on its hold of this number (from 0), and the recorded ending of that."""

    call: RecordedCall
    number: int
    recorded: Answered

    @property
    def name(self) -> str:
        """The id under which it is cited: the decision's, or the hold's that expired."""
        decision = self.recorded.decision
        return self.recorded.hold.hold_id if decision is None else decision.decision_id

    @property
    def said(self) -> str:
        """What was decided, and by whom."""
        return said_of(self.recorded)


def said_of(one: Answered) -> str:
    """How a hold ended, in words: `reject of rita`."""
    if one.decision is None:
        return "expiry" if one.expired else "nothing"
    return f"{one.decision.decision} of {' and '.join(one.voters) or one.decision.by}"


def find_point(execution_id: str, run: Run, named: str) -> Point:
    """The decision that is named by its own id, its event's, its hold's or its call's, or the beginning of one.

    Raises:
        DecisionNotFoundError: the run has none of that name, or several.
        NotReplaceableError: what is named is no person's decision on a call, or not decided yet.
    """
    points = list(_points(run))
    ids = [(point, _ids_of(point)) for point in points]
    found = [point for point, of in ids if named in of]
    found = found or [point for point, of in ids if any(one.startswith(named) for one in of)]
    if len(found) == 1:
        return _decided(execution_id, found[0])
    if found:
        raise DecisionNotFoundError(
            f"{named} fits {len(found)} decisions of {execution_id}: name one of {_listed(found)}."
        )
    raise _why_none(execution_id, run, points, named)


def _decided(execution_id: str, point: Point) -> Point:
    if point.call.is_planted:
        raise NotReplaceableError(
            f"The call {point.call.call_id} of {execution_id} was planted to see whether people notice: it never"
            " runs, and no fork runs it. Fork a run of the agent itself (`placet executions`)."
        )
    if point.recorded.decision is None and not point.recorded.expired:
        raise NotReplaceableError(
            f"The call {point.call.call_id} of {execution_id} was not decided: nothing can be replaced. If it still"
            f" waits, decide it (`placet show {point.recorded.hold.hold_id}`)."
        )
    return point


def _points(run: Run) -> Iterator[Point]:
    for call in run.calls.values():
        for number, one in enumerate(call.holds):
            yield Point(call, number, one)


def _ids_of(point: Point) -> tuple[str, ...]:
    decision = point.recorded.decision
    own = () if decision is None else (decision.decision_id, point.recorded.event_id)
    return (*own, point.recorded.hold.hold_id, point.call.call_id)


def _why_none(
    execution_id: str, run: Run, points: list[Point], named: str
) -> DecisionNotFoundError | NotReplaceableError:
    decided = [point for point in points if point.recorded.decision is not None or point.recorded.expired]
    others = f" Decisions that can be replaced: {_listed(decided)}." if decided else ""
    for step in run.steps:
        if isinstance(step, RecordedQuestion):
            if named in (step.asked.request_id, step.asked.hold_id, _decision_id(step.answer)):
                return NotReplaceableError(f"{named} is a question's answer, not a call's decision.{others}")
            continue
        why = _why_not(step, named)
        if why:
            return NotReplaceableError(f"{why}{others}")
    return DecisionNotFoundError(f"{execution_id} has no decision, call or hold {named}.{others}")


def _why_not(call: RecordedCall, named: str) -> str:
    """Why something of a call that has this id cannot be replaced; empty if nothing of it has the id."""
    for one in answered(call.events):
        if one.hold.cause == "outcome_unknown" and named in (one.hold.hold_id, _decision_id(one)):
            return f"{named} says what a call that ran had done: that is a fact, and no decision to run it."
    for event in call.events:
        body = event.body
        if not isinstance(body, h.DecisionRecorded) or named not in (body.decision_id, event.event_id):
            continue
        return f"{named} is one of several votes: name the decision that they led to, or the hold {body.hold_id}."
    if call.holds or named not in (call.call_id, *(event.event_id for event in call.events)):
        return ""
    verdict = call.verdict
    if verdict is None:
        return f"The call {call.call_id} was never judged."
    rules = f" ({', '.join(verdict.rules)})" if verdict.rules else ""
    return (
        f"No person decided the call {call.call_id}: the policy said {verdict.effect}{rules}, and only a person's"
        " decision can be replaced. `placet policy backtest` tries another policy."
    )


def _decision_id(one: Answered | None) -> str:
    return "" if one is None or one.decision is None else one.decision.decision_id


def _listed(points: list[Point]) -> str:
    shown = [f"{point.name} ({point.call.tool}: {point.said})" for point in points[:LISTED_MAX]]
    return ", ".join((*shown, *(["…"] if len(points) > LISTED_MAX else [])))
