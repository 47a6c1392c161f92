"""The agent and tool of an event: events contain only the call's id, and its proposal names both."""

from collections import OrderedDict
from typing import NamedTuple

from schemas.events.calls import (
    GrantRevoked,
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
from services.domain.trust import Kind

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
    {ToolCallProposed, DecisionRecorded, ToolCallOutcomeUnknown, *_ENDINGS}
)
CallKey = tuple[bytes, str]


class OpenCall(NamedTuple):
    """A call that may still produce evidence; `offset` and `term` are those of its first proposal."""

    agent: str
    tool: str
    offset: int
    term: int
    in_doubt: bool = False


class Attributed(NamedTuple):
    """A fact, with its agent and tool."""

    agent: str
    tool: str
    kind: Kind


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
        call_id = getattr(body, "call_id", "")
        call = self._calls.get((event.key, call_id)) if call_id else None
        if call is None:
            return None
        kind = _kind(event, call)
        if isinstance(body, _ENDINGS):
            del self._calls[event.key, call_id]
        elif isinstance(body, ToolCallOutcomeUnknown):
            self._calls[event.key, call_id] = call._replace(in_doubt=True)
        return Attributed(call.agent, call.tool, kind) if kind else None

    def _open(self, event: Event, body: ToolCallProposed) -> None:
        key = event.key, body.call_id
        first = self._calls.get(key)
        offset, term = (first.offset, first.term) if first else (event.offset, event.meta.term)
        self._calls[key] = OpenCall(body.agent, body.tool, offset, term)


def _kind(event: Event, call: OpenCall) -> Kind | None:
    body = event.body
    if not isinstance(body, DecisionRecorded):
        return _OUTCOMES.get(type(body))
    # A vote that does not resolve waits for others; a decision on a call in doubt is about what happened, not
    # about whether it should happen.
    return _DECISIONS[body.decision] if body.resolves and not call.in_doubt else None
