"""A run as its events tell it: what its agent proposed and asked, in order, what people said, and what came of it.

The original and the fork are read by the same functions, so that a difference between them is one of their events.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from ops.fork.errors import HistoryGapError
from schemas.canonical import canonical, parse_strict
from schemas.codec import MODELS
from schemas.events import calls as c
from schemas.events import executions as e
from schemas.events import holds as h
from schemas.message import Message

M = TypeVar("M", bound=Message)
# The causes of holds that a person answers with what shall happen to a call; the others say what has happened.
DECIDABLE = ("policy", "definition_changed")
CLOSING = (e.ExecutionCompleted, e.ExecutionFailed, e.ExecutionCancelled)
IDS = ("call_id", "request_id", "hold_id")
# Of the events that belong to no call or question, those that a fork makes anew or that changed nothing.
FOLLOWING = (e.ExecutionStarted, *CLOSING, e.CommandRefused, h.DecisionRefused)
# The end of a call by the newest of these events; while a person's hold is open, it is held.
STATUS: Mapping[type[Message], str] = {
    c.ToolCallProposed: "proposed",
    h.HoldOpened: "held",
    c.ToolCallReleased: "released",
    c.GrantConsumed: "consumed",
    c.GrantRevoked: "revoked",
    c.ToolCallDenied: "denied",
    c.ToolCallCancelled: "cancelled",
    c.ToolCallSucceeded: "succeeded",
    c.ToolCallFailed: "failed",
    c.ToolCallOutcomeUnknown: "outcome_unknown",
}


class Recorded(NamedTuple):
    """An event with its id and its version: its place in the run, counted from 1."""

    event_id: str
    version: int
    body: Message


class Result(NamedTuple):
    """What a call's tool returned: the outcome `succeeded` with the output (JSON), or `failed` with the error."""

    outcome: str
    text: str

    @property
    def output(self) -> Any:
        """The output, parsed; None of a failure."""
        return json.loads(self.text) if self.outcome == "succeeded" else None


@dataclass(frozen=True)
class Answered:
    """A hold of a call or a question, and the decision that ended it; `decision` is None if none did.

    `voters` are the people who had voted on it, in order.
    """

    hold: h.HoldOpened
    decision: h.DecisionRecorded | None = None
    event_id: str = ""
    voters: tuple[str, ...] = ()
    expired: bool = False


@dataclass(frozen=True)
class RecordedCall:
    """A call with all events about it."""

    call_id: str
    events: tuple[Recorded, ...]

    @cached_property
    def proposed(self) -> c.ToolCallProposed:
        """What the agent proposed: revision 1."""
        return next(_of(self.events, c.ToolCallProposed))

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.proposed.tool

    @cached_property
    def is_planted(self) -> bool:
        """True if an operator planted it; the API's events say so only once its hold has ended."""
        denial = self.denied is not None and self.denied.cause == "probe"
        return denial or any(_of(self.events, c.ProbeEnded)) or self.proposed.probe is not None

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments that the agent proposed."""
        return _parsed(self.proposed.arguments)

    @cached_property
    def verdict(self) -> c.PolicyVerdictIssued | None:
        """The first verdict on what the agent proposed; None if the run ended before there was one."""
        return next(_of(self.events, c.PolicyVerdictIssued), None)

    @cached_property
    def holds(self) -> tuple[Answered, ...]:
        """The holds in which people were asked whether it may run, in order."""
        return tuple(one for one in answered(self.events) if one.hold.cause in DECIDABLE)

    @cached_property
    def released(self) -> c.ToolCallReleased | None:
        """The newest release."""
        return _last(self.events, c.ToolCallReleased)

    @cached_property
    def denied(self) -> c.ToolCallDenied | None:
        """Its denial, by the policy, a person or a deadline."""
        return _last(self.events, c.ToolCallDenied)

    @cached_property
    def final_arguments(self) -> str:
        """The arguments of its newest revision, as canonical JSON."""
        newest = _last(self.events, c.ToolCallProposed)
        return (newest or self.proposed).arguments

    @cached_property
    def result(self) -> Result | None:
        """What its tool returned, also if that was said only later."""
        for one in reversed(self.events):
            if isinstance(one.body, c.ToolCallSucceeded):
                return Result("succeeded", one.body.output)
            if isinstance(one.body, c.ToolCallFailed):
                return Result("failed", one.body.error)
        return None

    @property
    def result_version(self) -> int:
        """The place of its result among the run's events; 0 without one."""
        of = (c.ToolCallSucceeded, c.ToolCallFailed)
        return max((one.version for one in self.events if isinstance(one.body, of)), default=0)

    @cached_property
    def status(self) -> str:
        """How it stands after its newest event."""
        found = [STATUS[type(one.body)] for one in self.events if type(one.body) in STATUS]
        if found[-1] == "denied" and self.denied is not None and self.denied.cause == "timeout":
            return "expired"
        return found[-1]


@dataclass(frozen=True)
class RecordedQuestion:
    """A question of the agent to people."""

    asked: h.HumanInputRequested
    answer: Answered | None
    provided: h.HumanInputProvided | None = None


Step = RecordedCall | RecordedQuestion


@dataclass(frozen=True)
class Run:
    """A run: its start, its steps in the order in which they were proposed, and its end (None while it goes on).

    `unrepeated` counts events, by type, that are neither steps nor follow from them: pauses, messages, turns.
    """

    started: e.ExecutionStarted
    steps: tuple[Step, ...]
    ended: Message | None = None
    unrepeated: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def calls(self) -> Mapping[str, RecordedCall]:
        """The calls by their ids, in order."""
        return {step.call_id: step for step in self.steps if isinstance(step, RecordedCall)}


def read_run(execution_id: str, items: Iterable[Mapping[str, Any]]) -> Run:
    """A run from its events, as the API returns them.

    Args:
        execution_id: for what is said if they cannot be read.
        items: all of its events, in order: `{event_id, version, type, data}`.

    Raises:
        HistoryGapError: some are missing, or of a type that this version does not know.
    """
    events = [_event(execution_id, item) for item in items]
    for place, one in enumerate(events, start=1):
        if one.version != place:
            raise HistoryGapError(
                f"The history of {execution_id} is not complete: its event {place} is missing. Rebuild the views"
                " (`placet replay`), and check the log (`placet audit-log`)."
            )
    if not events or not isinstance(events[0].body, e.ExecutionStarted):
        raise HistoryGapError(
            f"The history of {execution_id} does not begin with its start: `placet audit-log`."
        )
    by_call, by_request, others = _grouped(events)
    order = sorted(
        [*by_call.values(), *by_request.values()],
        key=lambda group: group[0].version,
    )
    return Run(
        events[0].body,
        tuple(_step(group) for group in order),
        next((one.body for one in reversed(events) if isinstance(one.body, CLOSING)), None),
        dict(sorted(others.items())),
    )


def answered(events: Iterable[Recorded]) -> Iterator[Answered]:
    """The holds among the events of one call or question, each with what ended it."""
    events = tuple(events)
    for opened in _of(events, h.HoldOpened):
        about = [one for one in events if getattr(one.body, "hold_id", "") == opened.hold_id]
        votes = [one for one in about if isinstance(one.body, h.DecisionRecorded)]
        ending = next((one for one in votes if _resolves(one.body)), None)
        yield Answered(
            opened,
            ending.body if ending is not None and isinstance(ending.body, h.DecisionRecorded) else None,
            "" if ending is None else ending.event_id,
            tuple(dict.fromkeys(str(getattr(one.body, "by", "")) for one in votes)),
            any(isinstance(one.body, h.HoldExpired) for one in about),
        )


def key_of(tool: str, arguments: Any) -> tuple[str, str]:
    """What makes two calls equal: the tool, and the arguments as canonical JSON."""
    return tool, arguments if isinstance(arguments, str) else canonical(arguments)


def _event(execution_id: str, item: Mapping[str, Any]) -> Recorded:
    model = MODELS.get(f"placet.events.{item['type']}")
    if model is None:
        raise HistoryGapError(
            f"The history of {execution_id} has an event {item['type']}, which this version does not know: use the"
            " version of the server."
        )
    return Recorded(item["event_id"], item["version"], model.model_validate_json(json.dumps(item["data"])))


Groups = dict[str, list[Recorded]]


def _grouped(events: Iterable[Recorded]) -> tuple[Groups, Groups, Counter[str]]:
    """The events of each call and of each question, by their ids; and how many others there are, by type."""
    calls: Groups = {}
    requests: Groups = {}
    holds: dict[str, list[Recorded]] = {}
    others: Counter[str] = Counter()
    for one in events:
        call_id, request_id, hold_id = (str(getattr(one.body, name, "")) for name in IDS)
        if isinstance(one.body, c.ToolCallProposed):
            group = calls.setdefault(call_id, [])
        elif isinstance(one.body, h.HumanInputRequested):
            group = requests.setdefault(request_id, [])
        else:
            found = calls.get(call_id) or requests.get(request_id) or holds.get(hold_id)
            if found is None:
                others[type(one.body).__name__] += not isinstance(one.body, FOLLOWING)
                continue
            group = found
        group.append(one)
        if hold_id:
            holds[hold_id] = group
    return calls, requests, +others


def _step(group: list[Recorded]) -> Step:
    first = group[0].body
    if isinstance(first, c.ToolCallProposed):
        return RecordedCall(first.call_id, tuple(group))
    asked = next(_of(group, h.HumanInputRequested))
    return RecordedQuestion(asked, next(answered(group), None), _last(group, h.HumanInputProvided))


def _of(events: Iterable[Recorded], kind: type[M]) -> Iterator[M]:
    return (one.body for one in events if isinstance(one.body, kind))


def _last(events: Iterable[Recorded], kind: type[M]) -> M | None:
    return next(iter(reversed([*_of(events, kind)])), None)


def _resolves(body: Message) -> bool:
    return isinstance(body, h.DecisionRecorded) and body.resolves


def _parsed(arguments: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = parse_strict(arguments)
    return found
