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
# What of them is shown with a call. Many WebSocket clients close at a message of 1 MiB, and the call shows its
# arguments twice and its output besides.
PATCH_SHOWN_BYTES = 32 * 1024
EDITS_SHOWN_BYTES = 64 * 1024


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


def edits_json(text: str | None) -> list[dict[str, Any]]:
    """The newest edits in a call's row, as the APIs show them, oldest first.

    A patch over `PATCH_SHOWN_BYTES` is null. The last edit is always there; of those before it, as many as fit into
    `EDITS_SHOWN_BYTES` together.
    """
    shown: list[dict[str, Any]] = []
    size = 0
    for edit in reversed(json_value(text) or ()):
        if len(json_text(edit["patch"]).encode()) > PATCH_SHOWN_BYTES:
            edit = {**edit, "patch": None}
        size += len(json_text(edit).encode())
        if shown and size > EDITS_SHOWN_BYTES:
            break
        shown.append(edit)
    return shown[::-1]


def patch_of(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """The JSON Patch that turns one object into another."""
    return [_operation(change) for change in changes(before, after)]


def _operation(change: Change) -> dict[str, Any]:
    path = pointer(change.path)
    if change.after is ABSENT:
        return {"op": "remove", "path": path}
    return {"op": "add" if change.before is ABSENT else "replace", "path": path, "value": change.after}
