"""The edits that people made to a call's arguments, each as a JSON Patch (RFC 6902) from what it replaced."""

from typing import Any

from projections.folds.rows import json_text, json_value, moment
from projections.tables.calls import CallRow
from schemas.canonical import parse_strict
from schemas.display.difference import ABSENT, Change, changes
from schemas.events.holds import DecisionRecorded
from schemas.sensitive import pointer

# Of more edits of one call, only the last are kept: each can be as large as the arguments.
EDITS_MAX = 20


def with_edit(call: CallRow, body: DecisionRecorded, at_ms: int) -> str | None:
    """The `edits` of a call's row after a decision.

    Args:
        call: its row before the decision.
        body: the decision; only an edit adds one.
        at_ms: when it was recorded.
    """
    edits = call["edits"]
    if body.decision != "edit" or body.edited_arguments is None:
        return edits
    edit = {
        "revision": call["revision"] + 1,
        "decision_id": body.decision_id,
        "by": body.by,
        "at": moment(at_ms),
        "feedback": body.feedback,
        "patch": patch_of(parse_strict(call["arguments"]), parse_strict(body.edited_arguments)),
    }
    return json_text([*(json_value(edits) or ()), edit][-EDITS_MAX:])


def patch_of(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """The JSON Patch that turns one object into another."""
    return [_operation(change) for change in changes(before, after)]


def _operation(change: Change) -> dict[str, Any]:
    path = pointer(change.path)
    if change.after is ABSENT:
        return {"op": "remove", "path": path}
    return {"op": "add" if change.before is ABSENT else "replace", "path": path, "value": change.after}
