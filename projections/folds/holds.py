"""The hold: one pause for a person, with the view shown to that person. A request is a hold with a `request_id`."""

from typing import Any

from projections.folds.calls import decision_json, risk_json, verdict_json
from projections.folds.effects import Before
from projections.folds.events import EFFECTS
from projections.folds.resources import resource_of
from projections.folds.rows import json_value
from projections.tables.calls import CallRow
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HOLDS, HoldRow
from schemas.record import Event
from schemas.requirement import requirements_from_text


def hold_resource(
    previous: HoldRow | None,
    event: Event,
    *,
    call: CallRow | None = None,
    execution: ExecutionRow | None = None,
    turn: TurnRow | None = None,
) -> HoldRow | None:
    """The hold's row after an event.

    Args:
        previous: the row of the hold that the event is about, or None before its first event.
        event: any event of the hold's execution; one about another hold changes nothing.
        call: the held call's row before the event; needed if a call's hold opens.
        execution: the execution's row; needed if a hold opens.
        turn: the row of the turn that the agent was answering; needed if a hold opens.

    Returns:
        The row; None while there is no hold.
    """
    body = event.body
    effect = EFFECTS[type(body)]
    if effect.opens is not None:
        return effect.opens(previous, body, event, Before(execution, call, previous, turn))
    if effect.hold is None or previous is None or previous["hold_id"] != body.__dict__["hold_id"]:
        return previous
    row = previous.copy()
    effect.hold(row, body, event)
    row["updated_at_ms"] = event.meta.at_ms
    return row


def hold_json(row: HoldRow) -> dict[str, Any]:
    """The hold as REST and the sockets serve it, from its row."""
    return _HOLD(row)


def _view_version(row: HoldRow) -> int | None:
    return row["view_version"] if row["view_digest"] else None


def requirements_json(text: str | None) -> list[dict[str, Any]]:
    """The requirements of each of several rules, from their text in a fact or a row."""
    return [
        {"rules": one.rules, "roles": one.roles, "reviewers": one.reviewers, "quorum": one.quorum}
        for one in requirements_from_text(text)
    ]


def told_view_digest(row: HoldRow) -> str | None:
    """The digest of a hold's view, for a reader that is not sent the view.

    None if the view must be read: a decision on such a hold names the digest, which is returned only with the view.
    """
    return None if row["must_read"] else row["view_digest"] or None


def told_fields(data: dict[str, Any]) -> dict[str, Any]:
    """An event's fields as the APIs return them: without the digest of a view (`told_view_digest`).

    An event does not say whether the view of its hold must be read; so no event shows the digest. Nor does one say
    that its call was planted: people learn that by `ProbeEnded`, when they have answered.
    """
    told = {name: value for name, value in data.items() if name != "probe"}
    return {**told, "view_digest": ""} if told.get("view_digest") else told


def votes_of(row: HoldRow) -> list[dict[str, Any]]:
    """The votes on a hold; a row of an earlier version does not say what was to be remembered."""
    return [{"scope": "once", "remember": None} | vote for vote in json_value(row["votes"])]


def _votes_json(row: HoldRow) -> Any:
    votes = votes_of(row)
    return [{**vote, "view_digest": None} for vote in votes] if row["must_read"] else votes


def request_json(row: HoldRow) -> dict[str, Any]:
    """The request as the APIs return it, from its hold's row."""
    return _REQUEST(row)


_HOLD = resource_of(
    HOLDS,
    "tenant",
    "project",
    "hold_id",
    "execution_id",
    "request",
    "call_id",
    "request_id",
    "revision",
    "kind",
    "cause",
    "status",
    "agent",
    "tool",
    "tool_version",
    "arguments",
    "digest",
    "reason",
    "question",
    "options",
    "input_schema",
    "fields",
    "decision_type",
    "asks",
    ("risk", risk_json),
    "trust",
    ("verdict", verdict_json),
    "requester",
    "roles",
    "reviewers",
    "excluded",
    "quorum",
    ("requirements", lambda row: requirements_json(row["requirements"])),
    "exclude_requester",
    ("votes", _votes_json),
    "claimed_by",
    "claimed_until_ms",
    "assignee",
    "escalated",
    "opened_at_ms",
    "deadline_at_ms",
    "escalate_at_ms",
    "remind_at_ms",
    "on_timeout",
    "on_reject",
    ("default", "default_value"),
    ("decision", lambda row: decision_json(row, row["closed_at_ms"])),
    "response",
    "timed_out",
    "updated_at_ms",
    "closed_at_ms",
    ("view_digest", told_view_digest),
    ("view_version", _view_version),
    "must_read",
    "badges",
)


_REQUEST = resource_of(
    HOLDS,
    "request_id",
    "hold_id",
    "execution_id",
    "kind",
    "question",
    "options",
    "fields",
    "decision_type",
    "asks",
    "input_schema",
    "status",
    "response",
    "timed_out",
    ("by", "decided_by"),
    "decision",
    "feedback",
    "deadline_at_ms",
)
