"""The view of a hold: exactly the text whose digest is in the log, rebuilt from the hold's row."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

from gateway.live.reader import Subject
from gateway.operations.plan import Gate, Reply
from gateway.problems import Problem
from gateway.shares.work import owner_of
from projections.folds.holds import votes_of
from projections.folds.shown import view_of_row
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.display.view import View
from schemas.refusals import Refusal

logger = logging.getLogger(__name__)

AT_DECISION = "decision"
# What a hold's row has from the execution and its conversation, as they were when it opened.
_AS_OPENED = ("request", "senders", "must_read", "badges")


async def view_reply(
    gate: Gate, actor: Actor, row: HoldRow, execution: ExecutionRow, at: str | None
) -> Reply:
    """Answer with the view of a hold.

    Args:
        gate: the services of the gateway.
        actor: the caller.
        row: the hold's.
        execution: its execution's.
        at: `decision` for the view that each decision was made on, with the decisions; None for the view shown now.

    Raises:
        Problem: 404, the hold has no decision; 503, the rebuilt view is not the one that the log names.
    """
    if at == AT_DECISION and not votes_of(row):
        row = await gate.reader.caught_up(Subject("hold", actor.tenant, actor.project, "", row["hold_id"]))
    seen = votes_of(row)
    if at == AT_DECISION and not seen:
        raise Problem(Refusal.NOT_FOUND, "nobody has decided this hold: leave out at to see the present view")
    row = await as_opened(gate, actor, row)
    return gate.json(view_json(row, await view_of(gate, actor, row, execution), seen))


async def as_opened(gate: Gate, actor: Actor, row: HoldRow) -> HoldRow:
    """The row with what the agent was asked for, and with what depends on it.

    It lacks that if this gateway had not cached the execution, or the turn that the agent was answering, as the hold
    opened. The views have it.

    Raises:
        Problem: 503, the views are behind.
    """
    if row["request"] is not None:
        return row
    stored = await gate.reader.stored(Subject("hold", actor.tenant, actor.project, "", row["hold_id"]))
    found: Any = {**row, **{name: stored[name] for name in _AS_OPENED}}
    whole: HoldRow = found
    return whole


async def view_of(gate: Gate, actor: Actor, row: HoldRow, execution: ExecutionRow) -> View:
    """Rebuild the view of a hold; arguments as `view_reply`, the row as `as_opened` returns it.

    Raises:
        Problem: 503, the rebuilt view is not the one that the log names.
    """
    view = await gate.work.done(owner_of(actor), lambda: view_of_row(row, execution))
    if row["view_digest"] and view.digest != row["view_digest"]:
        logger.critical("the view of hold %s does not match the log: rebuild the views", row["hold_id"])
        detail = (
            "the view that this gateway would show does not match the log: an operator must run placet replay"
        )
        raise Problem(Refusal.UNAVAILABLE, detail, retry_after=60)
    return view


def view_json(row: HoldRow, view: View, seen: list[dict[str, Any]]) -> dict[str, Any]:
    """A view as the API shows it."""
    return {
        "hold_id": row["hold_id"],
        "version": view.version,
        "view_digest": row["view_digest"] or None,
        "text": view.text,
        "badges": view.badges,
        "redactions": [asdict(one) for one in view.redactions],
        "must_read": bool(row["must_read"]),
        "truncated": False,
        "diff": [asdict(one) for one in view.difference] if row["proposed_arguments"] is not None else None,
        "seen": seen,
    }
