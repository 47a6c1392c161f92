"""The agent, tool and class of an event: most events contain only the call's id.

The call's proposal names agent and tool, the verdict on its newest revision the class.
"""

from collections import OrderedDict
from typing import NamedTuple

from schemas.adaptive import is_sampled
from schemas.call_history import NO_HISTORY, CallHistory, history_from_text
from schemas.events.calls import (
    GrantRevoked,
    ImpactReported,
    PolicyVerdictIssued,
    ToolCallCancelled,
    ToolCallDenied,
    ToolCallFailed,
    ToolCallOutcomeUnknown,
    ToolCallProposed,
    ToolCallSucceeded,
)
from schemas.events.holds import DecisionRecorded
from schemas.message import Message
from schemas.record import Event
from schemas.trust import FactKind
from schemas.trust_facts import fact_of_decision, fact_of_revocation
from services.domain.trust.counting import Kind

_OUTCOMES: dict[type, Kind] = {
    ToolCallSucceeded: "successes",
    ToolCallFailed: "failures",
    ToolCallOutcomeUnknown: "unknowns",
}
# An answer instead of a run ("respond") means that the call does not happen.
_DECISIONS: dict[str, Kind] = {
    "approve": "approvals",
    "edit": "edits",
    "reject": "rejections",
    "respond": "rejections",
}
_ENDINGS = (ToolCallSucceeded, ToolCallFailed, ToolCallDenied, ToolCallCancelled, GrantRevoked)
# All events that it uses; any other event changes nothing.
FOLLOWED: frozenset[type[Message]] = frozenset(
    {
        ToolCallProposed,
        PolicyVerdictIssued,
        DecisionRecorded,
        ToolCallOutcomeUnknown,
        ImpactReported,
        *_ENDINGS,
    }
)
CallKey = tuple[bytes, str]


class OpenCall(NamedTuple):
    """A call that may still produce evidence; `offset` and `term` are those of its first proposal.

    `requester` is the account that proposed its newest revision, `trust_class` the class of that, `is_sampled` true
    if trust would have released it without asking, and `is_decided` true once people have decided on it. `is_edited`
    is true once a person has edited the call. `votes` are the approvals that others must join, each with its hold.
    `history` is that of its values.
    """

    agent: str
    tool: str
    offset: int
    term: int
    requester: str = ""
    in_doubt: bool = False
    trust_class: str = ""
    is_sampled: bool = False
    is_decided: bool = False
    is_edited: bool = False
    votes: tuple[tuple[str, str], ...] = ()
    history: CallHistory = NO_HISTORY


class Attributed(NamedTuple):
    """A fact about a call: what it counts as for the tool, and for the call's class; `by` are whose word it is."""

    call: OpenCall
    kind: Kind | None
    fact: FactKind | None
    by: tuple[str, ...] = ()


class OpenCalls:
    """The calls of one partition from their proposal to their end, oldest proposal first."""

    def __init__(self) -> None:
        # Ordered: the oldest is looked up in every round, and in a plain dict finding the first gets ever slower.
        self._calls: OrderedDict[CallKey, OpenCall] = OrderedDict()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def oldest(self) -> OpenCall | None:
        """The open call that was proposed first."""
        return next(iter(self._calls.values()), None)

    def follow(self, event: Event) -> Attributed | None:
        """Follow the next record that counts.

        Returns:
            The evidence in it, if any.
        """
        body = event.body
        if isinstance(body, ToolCallProposed):
            self._open(event, body)
            return None
        if isinstance(body, ImpactReported):
            return _of_impact(event, body)
        call_id = getattr(body, "call_id", "")
        call = self._calls.get((event.key, call_id)) if call_id else None
        if call is None:
            return None
        found = _attributed(event, call)
        if isinstance(body, _ENDINGS):
            del self._calls[event.key, call_id]
        else:
            self._calls[event.key, call_id] = _followed(event, call)
        return found

    def follows(self, event: Event) -> bool:
        """Returns True if an event is about an open call."""
        return (event.key, getattr(event.body, "call_id", "")) in self._calls

    def _open(self, event: Event, body: ToolCallProposed) -> None:
        if body.probe is not None:
            # The agent did not propose it, so nothing that people say of it is evidence.
            return
        key = event.key, body.call_id
        first = self._calls.get(key)
        offset, term = (first.offset, first.term) if first else (event.offset, event.meta.term)
        is_edited = first is not None and first.is_edited
        self._calls[key] = OpenCall(body.agent, body.tool, offset, term, body.by, is_edited=is_edited)


def _followed(event: Event, call: OpenCall) -> OpenCall:
    """The call after an event that does not end it."""
    body = event.body
    if isinstance(body, PolicyVerdictIssued):
        return call._replace(
            trust_class=body.trust_class,
            history=history_from_text(body.history),
            is_sampled=is_sampled(body.adaptive),
            is_decided=False,
            in_doubt=False,
        )
    if isinstance(body, ToolCallOutcomeUnknown):
        return call._replace(in_doubt=True)
    if not isinstance(body, DecisionRecorded):
        return call
    if body.resolves:
        return call._replace(is_decided=True, is_edited=call.is_edited or body.decision == "edit")
    is_vote = body.decision == "approve"
    return call._replace(votes=(*call.votes, (body.hold_id, body.by))) if is_vote else call


def _attributed(event: Event, call: OpenCall) -> Attributed | None:
    body = event.body
    if isinstance(body, DecisionRecorded):
        return _of_decision(body, call)
    if isinstance(body, GrantRevoked):
        fact = fact_of_revocation(body.reason)
        return None if fact is None else Attributed(call, None, fact, (body.by,))
    if isinstance(body, ToolCallCancelled):
        is_withdrawn = call.is_sampled and not call.is_decided
        return Attributed(call, None, "withdrawal") if is_withdrawn else None
    kind = _OUTCOMES.get(type(body))
    return None if kind is None else Attributed(call, kind, "failure" if kind == "failures" else None)


def _of_impact(event: Event, body: ImpactReported) -> Attributed:
    # The call has mostly ended, and is no longer followed: the event says itself what it is about.
    history = CallHistory(values=body.values)
    call = OpenCall(
        body.agent, body.tool, event.offset, event.meta.term, trust_class=body.trust_class, history=history
    )
    return Attributed(call, None, "impact", (body.by,))


def _of_decision(body: DecisionRecorded, call: OpenCall) -> Attributed | None:
    # A vote that does not resolve waits for others; a decision on a call in doubt is about what happened, not
    # about whether it should happen.
    if not body.resolves or call.in_doubt:
        return None
    fact = fact_of_decision(body.decision, is_edited=call.is_edited, is_sampled=call.is_sampled)
    earlier = (voter for hold_id, voter in call.votes if hold_id == body.hold_id)
    by = (*earlier, body.by) if body.decision == "approve" else (body.by,)
    return Attributed(call, _DECISIONS[body.decision], fact, by)
