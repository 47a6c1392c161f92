"""The facts that are reported to people: from the records that count to notices.

A fact names its hold or its call, and little else, so these are stored from their opening to their end, each of which
is a fact. The end of a run is preceded by the ends of everything that never ran. A call that was consumed, and the
hold about its outcome, continue after it (services/domain/execution/endings.py).
"""

from typing import Protocol, get_args

from msgspec.structs import replace

from schemas.events import calls as c
from schemas.events import executions as e
from schemas.events import holds as h
from schemas.ids import split_execution_key
from schemas.message import Message
from schemas.record import Event
from services.processors.notifications.document import EventName
from services.processors.notifications.notice import Call, Hold, Notice, Source

_ENDED_CALLS = (c.ToolCallSucceeded, c.ToolCallFailed, c.ToolCallDenied, c.ToolCallCancelled, c.GrantRevoked)
_ENDED_EXECUTIONS = (e.ExecutionCompleted, e.ExecutionFailed, e.ExecutionCancelled)
# All events that it uses; any other event reports nothing and leaves the context unchanged.
FOLLOWED: frozenset[type[Message]] = frozenset(
    {
        e.ExecutionStarted,
        c.ToolCallProposed,
        c.PolicyVerdictIssued,
        h.HoldOpened,
        h.DecisionRecorded,
        h.HoldCancelled,
        h.HoldExpired,
        h.HoldDelegated,
        h.HoldReminded,
        *get_args(h.DeadlineMoved),
        *_ENDED_CALLS,
        *_ENDED_EXECUTIONS,
    }
)
CANCELLED = "cancelled"
# The event, the hold's id, the hold after the event, and the detail.
Told = tuple[EventName, str, Hold, str]


class Context(Protocol):
    """The stored data of open executions, calls and holds, by the record's key."""

    def agent_of(self, key: bytes) -> str:
        """The agent of an execution; empty if it is unknown."""

    def start(self, key: bytes, agent: str) -> None:
        """An execution began."""

    def end(self, key: bytes) -> None:
        """It ended; calls and holds that are still open do not end with it."""

    def call(self, key: bytes, call_id: str) -> Call | None:
        """An open call."""

    def put_call(self, key: bytes, call_id: str, call: Call) -> None:
        """A call was proposed, or its data changed."""

    def drop_call(self, key: bytes, call_id: str) -> None:
        """A call ended."""

    def hold(self, key: bytes, hold_id: str) -> Hold | None:
        """An open hold."""

    def put_hold(self, key: bytes, hold_id: str, hold: Hold) -> None:
        """A hold was opened, or its data changed."""

    def drop_hold(self, key: bytes, hold_id: str) -> None:
        """A hold was closed."""


class Facts:
    """Follows the records that count, in offset order."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def follow(self, event: Event, source: Source) -> Notice | None:
        """Follow the next record.

        Returns:
            The notice that follows from it, if any.
        """
        told = self._told(event.key, event.body)
        if told is None:
            return None
        kind, hold_id, hold, detail = told
        tenant, project, execution_id = split_execution_key(event.key)
        return Notice(
            id=event.meta.event_id,
            type=kind,
            at_ms=event.meta.at_ms,
            tenant=tenant,
            project=project,
            execution_id=execution_id,
            hold_id=hold_id,
            hold=hold,
            source=source,
            detail=detail,
            trace=event.meta.trace,
        )

    def _told(self, key: bytes, body: Message) -> Told | None:
        match body:
            case h.HoldOpened():
                return self._opened(key, body)
            case h.DecisionRecorded(hold_id=hold_id, resolves=True):
                return self._closed(key, hold_id, "hold_resolved", body.decision)
            case h.HoldCancelled(hold_id=hold_id):
                return self._closed(key, hold_id, "hold_resolved", CANCELLED)
            case h.HoldExpired(hold_id=hold_id):
                return self._closed(key, hold_id, "hold_expired", body.on_timeout)
            case h.HoldReminded(hold_id=hold_id):
                hold = self._context.hold(key, hold_id)
                return ("hold_reminded", hold_id, hold, "") if hold else None
            case h.HoldEscalated():
                return self._escalated(key, body)
            case h.HoldDelegated():
                return self._delegated(key, body)
        self._note(key, body)
        return None

    def _note(self, key: bytes, body: Message) -> None:
        context = self._context
        match body:
            case e.ExecutionStarted():
                context.start(key, body.agent)
            case c.ToolCallProposed():
                context.put_call(key, body.call_id, Call(body.agent, body.tool, ""))
            case c.PolicyVerdictIssued():
                if (call := context.call(key, body.call_id)) is not None:
                    context.put_call(key, body.call_id, Call(call.agent, call.tool, body.risk_level))
            case _ if isinstance(body, h.DeadlineMoved):
                if (hold := context.hold(key, body.hold_id)) is not None:
                    context.put_hold(key, body.hold_id, replace(hold, deadline_at_ms=body.deadline_at_ms))
            case _ if isinstance(body, _ENDED_CALLS):
                context.drop_call(key, body.call_id)
            case _ if isinstance(body, _ENDED_EXECUTIONS):
                context.end(key)

    def _opened(self, key: bytes, body: h.HoldOpened) -> Told:
        call = self._context.call(key, body.call_id) if body.call_id else None
        hold = Hold(
            call_id=body.call_id,
            kind=body.kind,
            cause=body.cause,
            question=body.question,
            roles=body.roles,
            deadline_at_ms=body.deadline_at_ms,
            agent=call.agent if call else self._context.agent_of(key),
            tool=call.tool if call else "",
            risk=body.risk_level or (call.risk if call else ""),
        )
        self._context.put_hold(key, body.hold_id, hold)
        kind: EventName = "outcome_unknown" if body.cause == "outcome_unknown" else "hold_opened"
        return kind, body.hold_id, hold, ""

    def _closed(self, key: bytes, hold_id: str, kind: EventName, detail: str) -> Told | None:
        hold = self._context.hold(key, hold_id)
        self._context.drop_hold(key, hold_id)
        return (kind, hold_id, hold, detail) if hold else None

    def _escalated(self, key: bytes, body: h.HoldEscalated) -> Told | None:
        hold = self._context.hold(key, body.hold_id)
        if hold is None:
            return None
        everyone = tuple(dict.fromkeys((*hold.roles, *body.roles)))
        kept = replace(hold, roles=everyone, deadline_at_ms=body.deadline_at_ms)
        self._context.put_hold(key, body.hold_id, kept)
        # Reported to those who are asked from now on; the others were notified before.
        return "hold_escalated", body.hold_id, replace(kept, roles=body.roles), ""

    def _delegated(self, key: bytes, body: h.HoldDelegated) -> Told | None:
        hold = self._context.hold(key, body.hold_id)
        return ("hold_delegated", body.hold_id, hold, body.to) if hold else None
