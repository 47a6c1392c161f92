"""The messages to sockets about one command's events, and their channels.

The messages of a command show the state after all of its events, so one decision makes one message about its hold
and one about its call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from gateway.actions.holds import CHANGES
from gateway.live.facts import Fact, Group
from projections.folds.calls import call_json
from projections.folds.events.conversations import message_row
from projections.folds.executions import execution_json
from projections.folds.fold import subjects_of
from projections.folds.holds import hold_json, told_fields
from projections.folds.turns import message_json, turn_json, turn_of
from projections.tables.calls import CallRow
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.codec import SUBJECTS
from schemas.events import calls as c
from schemas.events import conversations as v
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.headers import rfc3339
from schemas.record import Event

HOLDS = "holds"
EVENTS = "events"
PENDING = frozenset({"proposed", "held"})
_DECIDES_CALL = frozenset({c.ToolCallReleased, c.ToolCallDenied, c.ToolCallCancelled, c.GrantRevoked})
_OPENS_HOLD = frozenset({h.HoldOpened, h.HumanInputRequested})
_SAYS = frozenset({v.MessageSent, v.ReplyPosted})
_MOVES_TURN = frozenset({v.MessageSent, v.TurnClaimed, v.TurnYielded, v.TurnResumed, v.TurnEnded})
CHANGES_NOTHING = frozenset(
    {x.CommandRefused, x.CommandAbandoned, h.DecisionRefused, h.SecretsDelivered, h.SecretsErased}
)
CallSubject = tuple[bytes, str]


class Push(NamedTuple):
    """A message before it is serialized.

    `call` is set if the message says that a pending call was decided: its proposer gets it without a subscription.
    `row` is the call's, if the message is about one, and `hold` the hold's.
    """

    type: str
    channels: tuple[str, ...]
    resource: Callable[[], dict[str, Any]]
    call: CallSubject | None = None
    row: CallRow | None = None
    hold: HoldRow | None = None


def pushes_of(group: Group) -> list[Push]:
    """Return the messages of one command's events, always the same ones in the same order."""
    return [
        *(_event(fact.event) for fact in group.facts),
        *_holds(group),
        *_calls(group),
        *_conversation(group),
        *_execution(group),
    ]


def concerns(group: Group) -> Iterator[str]:
    """Yield the channels of executions and calls that a group changes, but whose rows are not cached."""
    execution_id = group.key.decode().rpartition("/")[2]
    for fact in group.facts:
        if type(fact.event.body) in CHANGES_NOTHING:
            continue
        call_id, hold_id = subjects_of(fact.event.body)
        if call_id and fact.call is None:
            yield f"calls:{execution_id}/{call_id}"
        is_missing = (call_id and fact.call is None) or (hold_id and fact.hold is None)
        if fact.execution is None or is_missing or (turn_of(fact.event.body) and fact.turn is None):
            yield f"executions:{execution_id}"


def frame(push: Push, cursor: str | None, token: str | None = None) -> bytes:
    """Serialize a message; `token` is the grant's, for a reader who may consume it."""
    where = {} if cursor is None else {"cursor": cursor}
    message = {"type": push.type, **where, **push.resource()}
    if token is not None:
        message["grant"]["token"] = token
    return orjson.dumps(message)


def event_json(event: Event) -> dict[str, Any]:
    """An event as the API shows it: JSON texts in its body stay texts."""
    return {
        "event_id": event.meta.event_id,
        "event_type": SUBJECTS[type(event.body)].rpartition(".")[2],
        "at": rfc3339(event.meta.at_ms),
        "execution_id": event.key.decode().rpartition("/")[2],
        "version": event.meta.version,
        "term": event.meta.term,
        "partition": event.partition,
        "offset": event.offset,
        "command_id": event.meta.command_id,
        "data": told_fields(json.loads(event.body.model_dump_json())),
    }


def _event(event: Event) -> Push:
    return Push("event", (EVENTS,), lambda: event_json(event))


def _holds(group: Group) -> Iterator[Push]:
    touched: dict[str, list[Fact]] = {}
    newest: dict[str, HoldRow] = {}
    for fact in group.facts:
        if fact.hold is not None:
            touched.setdefault(fact.hold["hold_id"], []).append(fact)
            newest[fact.hold["hold_id"]] = fact.hold
    for hold_id, facts in touched.items():
        yield from _hold(newest[hold_id], facts)


def _hold(row: HoldRow, facts: list[Fact]) -> Iterator[Push]:
    types = {type(fact.event.body) for fact in facts}
    channels = channels_of(row, HOLDS)
    if types & _OPENS_HOLD:
        reviews = row["kind"] == "permission" and row["call_id"]
        kind = "tool_call_pending_review" if reviews else "hitl_requested"
        yield Push(kind, channels, lambda: hold_json(row), hold=row)
    if any(fact.hold_closed for fact in facts):
        yield Push("hold_resolved", channels, lambda: hold_json(row), hold=row)
    elif row["status"] == "open" and (changes := [CHANGES[kind] for kind in CHANGES if kind in types]):
        change = changes[-1]
        yield Push("hold_changed", channels, lambda: {**hold_json(row), "change": change}, hold=row)


def _calls(group: Group) -> Iterator[Push]:
    touched: dict[str, list[Fact]] = {}
    newest: dict[str, CallRow] = {}
    for fact in group.facts:
        if fact.call is not None and fact.call_changed:
            touched.setdefault(fact.call["call_id"], []).append(fact)
            newest[fact.call["call_id"]] = fact.call
    for call_id, facts in touched.items():
        row = newest[call_id]
        is_decided = row["status"] not in PENDING and any(
            type(fact.event.body) in _DECIDES_CALL for fact in facts
        )
        yield _call(group.key, row, is_decided)


def _call(key: bytes, row: CallRow, is_decided: bool) -> Push:
    kind = "tool_call_decided" if is_decided else "tool_call_changed"
    subject = (key, row["call_id"]) if is_decided else None
    return Push(kind, channels_of(row), lambda: call_json(row), subject, row)


def _conversation(group: Group) -> Iterator[Push]:
    moved: dict[str, TurnRow] = {}
    for fact in group.facts:
        kind = type(fact.event.body)
        if kind in _SAYS and fact.turn is not None:
            yield _message(fact.turn, fact.event)
        if kind in _MOVES_TURN and fact.turn is not None:
            moved[fact.turn["turn_id"]] = fact.turn
    for row in moved.values():
        yield _turn(row)


def _message(row: TurnRow, event: Event) -> Push:
    return Push("message", channels_of(row), lambda: message_json(message_row(event)))


def _turn(row: TurnRow) -> Push:
    return Push("turn_changed", channels_of(row), lambda: turn_json(row))


def _execution(group: Group) -> Iterator[Push]:
    row = group.facts[-1].execution
    if row is not None and any(fact.state_changed for fact in group.facts):
        yield Push("execution_state_changed", channels_of(row), lambda: execution_json(row))


def channels_of(row: CallRow | HoldRow | ExecutionRow | TurnRow, *more: str) -> tuple[str, ...]:
    """Return the channels of a row: its execution's and, if it is of a call, that one's; and more."""
    execution = f"executions:{row['execution_id']}"
    call_id = row.get("call_id")
    if not call_id:
        return (execution, *more)
    return (execution, f"calls:{row['execution_id']}/{call_id}", *more)
