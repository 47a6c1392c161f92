"""A hold's view as a person was shown it: rebuilt from the row, byte for byte what the log's `view_digest` names.

A row changes while its hold is open: roles are added, the deadline moves. The view shows them as they were when
the hold opened, so those values are stored separately, in `opening`.
"""

from typing import Any, TypedDict, cast

from projections.folds.rows import json_text, json_value
from projections.tables.calls import CallRow
from projections.tables.holds import HoldRow
from schemas.display.judged import Judged
from schemas.display.versions import SHOW_MESSAGE
from schemas.display.view import (
    UNKNOWN_OUTCOME,
    Held,
    View,
    offer_of,
    texts_of,
    view_of,
    words_of_asks,
)
from schemas.display.whole import look_at
from schemas.events.holds import HoldOpened

_OF_OPENING = (
    "roles",
    "reviewers",
    "excluded",
    "deadline_at_ms",
    "on_timeout",
    "remember",
    "risk_level",
    "requirements",
)


class Run(TypedDict):
    """The fields of an execution that are shown; an execution's row has them."""

    user_id: str
    request: str


class _Verdict(TypedDict):
    """The verdict's columns in the row of a hold that has one: none of them is null then."""

    effect: str
    rules: str
    policy_version: str
    verdict_reason: str
    verdict_detail: str
    risk_score: float
    risk_level: str
    risk_parts: str
    risk_required: float
    trust: str | None
    history: str | None
    adaptive: str | None


def show_opening(row: HoldRow, body: HoldOpened, call: CallRow | None, agent: str | None, asked: str) -> None:
    """Store in a hold's row what is shown when it opens.

    Args:
        row: the hold's, with what its agent was asked for; it is changed.
        body: the opening.
        call: the held call's row, if a call is held.
        agent: the agent that asks, if no call is held.
        asked: the request that the run was started for.
    """
    words = [body.question, agent or ""]
    if call is not None:
        words = [body.question, call["agent"], call["tool"], call["reason"]]
    words += words_of_asks(body.view_version, row["asks"])
    texts = texts_of(body.view_version, asked, row["request"] or "", *words)
    if call is None:
        said = offer_of(
            body.view_version, body.options, row["fields"], row["decision_type"], body.default_value
        )
    else:
        said = (call["arguments"],)
    look = look_at(said, texts, body.view_version)
    row.update(
        {
            "view_digest": body.view_digest,
            "view_version": body.view_version,
            # A hold that an earlier version opened has no view that could be named.
            "must_read": int(bool(body.view_digest) and look.must_read),
            "badges": json_text(look.badges),
            "proposed_arguments": None if call is None else call["proposed_arguments"],
            "opening": json_text({name: getattr(body, name) for name in _OF_OPENING}),
        }
    )


def view_of_row(row: HoldRow, execution: Run) -> View:
    """The view of a hold.

    Args:
        row: the hold's, at any time after it opened.
        execution: the row of its execution.
    """
    return view_of(_held(row, execution, json_value(row["opening"])), row["view_version"])


def _held(row: HoldRow, execution: Run, opening: dict[str, Any]) -> Held:
    return Held(
        tenant=row["tenant"],
        project=row["project"],
        execution_id=row["execution_id"],
        asked=execution["request"],
        message=(row["request"] or "") if row["view_version"] in SHOW_MESSAGE else "",
        hold_id=row["hold_id"],
        call_id=row["call_id"] or "",
        request_id=row["request_id"] or "",
        revision=row["revision"],
        digest=row["digest"],
        kind=row["kind"],
        cause=row["cause"],
        question=row["question"],
        options=row["options"],
        fields=row["fields"],
        decision_type=row["decision_type"],
        asks=row["asks"],
        requester=row["requester"],
        agent=row["agent"] or "",
        user=execution["user_id"],
        tool=row["tool"] or "",
        tool_version=row["tool_version"] or "",
        reason=row["reason"] or "",
        arguments=row["arguments"],
        proposed_arguments=row["proposed_arguments"] or "",
        judged=_judged(row, opening),
        roles=opening["roles"],
        reviewers=opening["reviewers"],
        excluded=opening["excluded"],
        quorum=row["quorum"],
        exclude_requester=bool(row["exclude_requester"]),
        opened_at_ms=row["opened_at_ms"],
        deadline_at_ms=opening["deadline_at_ms"],
        on_timeout=opening["on_timeout"],
        default_value=row["default_value"],
        escalate_roles=json_value(row["escalate_roles"]),
        on_reject=row["on_reject"],
        remember=opening["remember"],
        requirements=opening.get("requirements"),
    )


def _judged(row: HoldRow, opening: dict[str, Any]) -> Judged | None:
    # The verdict in the row of a call that has run is the earlier one: a hold about its outcome shows none.
    if row["effect"] is None or row["cause"] == UNKNOWN_OUTCOME or not opening["risk_level"]:
        return None
    verdict = cast("_Verdict", row)
    return Judged(
        effect=verdict["effect"],
        rules=json_value(verdict["rules"]),
        policy_version=verdict["policy_version"],
        reason=verdict["verdict_reason"],
        detail=verdict["verdict_detail"],
        risk_score=verdict["risk_score"],
        risk_level=verdict["risk_level"],
        risk_parts=json_value(verdict["risk_parts"]),
        risk_required=verdict["risk_required"],
        trust=verdict["trust"],
        history=verdict["history"],
        adaptive=verdict["adaptive"],
    )
