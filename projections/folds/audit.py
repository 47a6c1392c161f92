"""The audit trail: who did or decided what, to what, and on which digest.

One entry for each act of authority: a person's word, the policy's own release or denial, a deadline that
passed, a hold handled, a run steered, a definition published, and every attempt that was refused. How the
call ended is not copied here; the view `audit` joins it from the call.
"""

import re
from collections.abc import Callable
from typing import Any

from projections.folds.definitions import KINDS
from projections.folds.rows import Row, json_text, json_value, moment, place_of
from schemas.events import calls as c
from schemas.events import definitions as d
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.events import rules as r
from schemas.ids import TENANT_WIDE, project_of_definition
from schemas.message import Message
from schemas.record import Event

TIMER = "placet:timer"
# Of a definition of the whole tenant, which is shown in each of its projects.
NO_PROJECT = ""
ERASE, DESTROY_KEY = "erase_secrets", "destroy_data_key"

Entry = Callable[[Any, Row | None, Row | None, Row | None], Row | None]


def audit_entry(
    event: Event, *, execution: Row | None = None, call: Row | None = None, hold: Row | None = None
) -> Row | None:
    """The audit row of an event, or None where nobody exercised authority.

    Args:
        event: any event of an execution.
        execution: the execution's row before the event.
        call: the row, before the event, of the call that it is about.
        hold: likewise of the hold.
    """
    make = _ENTRIES.get(type(event.body))
    entry = None if make is None else make(event.body, execution, call, hold)
    if entry is None:
        return None
    tenant, project, execution_id = place_of(event.key)
    row = _row(event, tenant, project) | {"execution_id": execution_id}
    if call is not None:
        row |= {"call_id": call["call_id"], "digest": call["digest"]}
    if hold is not None:
        row |= {"hold_id": hold["hold_id"], "call_id": hold["call_id"], "digest": hold["digest"]}
    return row | entry


def publication_entry(event: Event) -> Row:
    """The audit row of a published policy, tool or principal."""
    body: Any = event.body
    kind = KINDS[type(body)]
    before = None if body.version == 1 else json_text({"name": body.name, "version": body.version - 1})
    return _row(event, event.meta.tenant, _project_of(body.project)) | {
        "subject": body.by,
        "action": f"publish_{kind}",
        "digest": body.tool_version if isinstance(body, d.ToolPublished) else "",
        "before": before,
        "after": json_text({"name": body.name, "version": body.version}),
    }


def retirement_entry(event: Event) -> Row:
    """The audit row of a policy that was retired."""
    body: Any = event.body
    return _row(event, event.meta.tenant, _project_of(body.project)) | {
        "subject": body.by,
        "action": "retire_policy",
        "before": json_text({"name": body.name, "version": body.version}),
        "feedback": body.reason,
    }


def destruction_entry(event: Event) -> Row:
    """The audit row of a destroyed data key."""
    body: Any = event.body
    return _row(event, event.meta.tenant, _project_of(body.project)) | {
        "subject": body.by,
        "action": DESTROY_KEY,
        "after": json_text({"name": body.name}),
        "feedback": body.reason,
    }


def rule_entry(event: Event, before: Row | None, after: Row) -> Row:
    """The audit row of a standing rule that was made, activated, suspended or revoked."""
    body: Any = event.body
    evidence: dict[str, Any] = json_value(after["document"])["evidence"]
    is_made = isinstance(body, r.RuleMade)
    return _row(event, event.meta.tenant, after["project"]) | {
        "subject": body.by,
        "action": _snake(type(body).__name__),
        "execution_id": evidence["execution_id"],
        "call_id": evidence["call_id"],
        "hold_id": evidence["hold_id"],
        "digest": evidence["digest"],
        "before": None
        if before is None
        else json_text({"rule_id": body.rule_id, "status": before["status"]}),
        "after": body.document
        if is_made
        else json_text({"rule_id": body.rule_id, "status": after["status"]}),
        "feedback": body.reason,
    }


def refused_publication_entry(event: Event, rule: Row | None = None) -> Row:
    """The audit row of a definition command that was refused.

    Args:
        event: the refusal.
        rule: the row of the standing rule that it is about, if it is about one.
    """
    project = _project_of(project_of_definition(event.key)) if rule is None else rule["project"]
    return _row(event, event.meta.tenant, project) | _refused(event.body, None, None, None)


def abandoned_publication_entry(event: Event) -> Row:
    """The audit row of a definition command that was given up."""
    body: Any = event.body
    project = _project_of(project_of_definition(event.key))
    return _row(event, event.meta.tenant, project) | _abandoned(body, None, None, None)


def _project_of(project: str) -> str:
    return NO_PROJECT if project == TENANT_WIDE else project


def audit_json(row: Row) -> dict[str, Any]:
    """The audit row of the outward interface; `row` has the end of its call joined to it (the view `audit`)."""
    return {
        "event_id": row["event_id"],
        "at": moment(row["at_ms"]),
        "subject": row["subject"],
        "action": row["action"],
        "execution_id": row["execution_id"],
        "call_id": row["call_id"],
        "hold_id": row["hold_id"],
        "digest": row["digest"],
        "before": json_value(row["before"]),
        "after": json_value(row["after"]),
        "feedback": row["feedback"],
        "view_digest": row["view_digest"],
        "dwell_ms": row["dwell_ms"],
        "result": _result_json(row),
    }


def _result_json(row: Row) -> dict[str, Any] | None:
    if row["result"] is None:
        return None
    return {
        "status": row["result"],
        "output": json_value(row["result_output"]),
        "error": row["result_error"],
        "ended_at": moment(row["result_at_ms"]),
    }


def _row(event: Event, tenant: str, project: str) -> Row:
    return {
        "tenant": tenant,
        "project": project,
        "event_id": event.meta.event_id,
        "at_ms": event.meta.at_ms,
        "execution_id": None,
        "call_id": None,
        "hold_id": None,
        "digest": "",
        "before": None,
        "after": None,
        "feedback": "",
        "view_digest": None,
        "dwell_ms": None,
        "log_partition": event.partition,
        "log_offset": event.offset,
    }


def _decided(body: h.DecisionRecorded, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    before = None if hold is None else hold["arguments"]
    after = {"approve": before, "edit": body.edited_arguments, "respond": body.value}.get(body.decision)
    return {
        "subject": body.by,
        "action": body.decision,
        "digest": body.digest,
        "before": before,
        "after": after,
        "feedback": body.feedback,
        "view_digest": body.view_digest or None,
        "dwell_ms": body.dwell_ms,
    }


def _decision_refused(
    body: h.DecisionRefused, execution: Row | None, call: Row | None, hold: Row | None
) -> Row:
    after = {"code": str(body.code), "winning_decision_id": body.winning_decision_id or None}
    return {
        "subject": body.by,
        "action": f"{body.decision}_refused",
        "hold_id": body.hold_id,
        "digest": body.digest,
        "after": json_text(after),
        "feedback": body.detail,
    }


def _refused(body: Any, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {
        "subject": body.by,
        "action": f"{_snake(body.command)}_refused",
        "after": json_text({"code": str(body.code), "subject_id": body.subject_id or None}),
        "feedback": body.detail,
    }


def _abandoned(body: x.CommandAbandoned, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    after = json_text({"command_offset": body.command_offset, "attempts": body.attempts})
    return {"subject": TIMER, "action": f"{_snake(body.command)}_abandoned", "after": after}


def _released(
    body: c.ToolCallReleased, execution: Row | None, call: Row | None, hold: Row | None
) -> Row | None:
    if body.released_by == "decision":
        return None
    return {
        "subject": _policy(call) if body.released_by == "policy" else f"rule:{body.rule_id}",
        "action": "release",
        "digest": body.digest,
        "before": None if call is None else call["arguments"],
        "after": body.arguments,
    }


def _denied(body: c.ToolCallDenied, execution: Row | None, call: Row | None, hold: Row | None) -> Row | None:
    if body.cause in ("rejected", "timeout"):
        return None
    subject = _policy(call) if body.cause == "policy" else TIMER
    before = None if call is None else call["arguments"]
    return {"subject": subject, "action": "deny", "before": before, "feedback": body.feedback}


def _revoked(body: c.GrantRevoked, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    before = None if call is None else call["arguments"]
    return {"subject": body.by or TIMER, "action": "revoke", "before": before, "feedback": body.reason}


def _rolled_back(body: h.RollbackStarted, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {"subject": body.by, "action": "rollback", "after": json_text(body.calls)}


def _rule_asked(body: r.RuleAsked, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {"subject": body.by, "action": "ask_rule", "after": body.document}


def _contradicted(body: r.RuleContradicted, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    after = json_text({"rule_id": body.rule_id, "decision_id": body.decision_id or None})
    return {"subject": body.by, "action": "contradict_rule", "after": after}


def _expired(body: h.HoldExpired, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {"subject": TIMER, "action": "expire", "after": json_text({"on_timeout": body.on_timeout})}


def _defaulted(
    body: h.HumanInputProvided, execution: Row | None, call: Row | None, hold: Row | None
) -> Row | None:
    # Of a question without a default the null that its agent gets is nobody's answer: `expire` says the rest.
    if not body.timed_out or (hold is not None and hold["on_timeout"] != "default"):
        return None
    return {"subject": body.by or TIMER, "action": "default", "after": body.response}


def _claimed(body: h.HoldClaimed, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {"subject": body.by, "action": "claim"} | _change(hold, "claimed_by", body.by)


def _unclaimed(body: h.HoldUnclaimed, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {"subject": body.by, "action": "unclaim"} | _change(hold, "claimed_by", None)


def _delegated(body: h.HoldDelegated, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {"subject": body.by, "action": "delegate"} | _change(hold, "assignee", body.to)


def _extended(body: h.HoldExtended, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return {"subject": body.by, "action": "extend"} | _change(hold, "deadline_at_ms", body.deadline_at_ms)


def _escalated(body: h.HoldEscalated, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    before = None if hold is None else hold["roles"]
    return {
        "subject": body.by or TIMER,
        "action": "escalate",
        "before": before,
        "after": json_text(body.roles),
    }


def _paused(body: x.ExecutionPaused, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return _steered(body.by, "pause", execution, "paused", body.reason)


def _resumed(body: x.ExecutionResumed, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return _steered(body.by, "resume", execution, "resumed", body.feedback)


def _cancelled(body: x.ExecutionCancelled, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    return _steered(body.by, "cancel", execution, "cancelled", body.reason)


def _steered(by: str, action: str, execution: Row | None, state: str, feedback: str) -> Row:
    return {"subject": by, "action": action, "feedback": feedback} | _change(execution, "state", state)


def _change(row: Row | None, name: str, after: Any) -> Row:
    before = None if row is None else json_text({name: row[name]})
    return {"before": before, "after": json_text({name: after})}


def _taken(body: h.SecretsDelivered, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    after = {"request_id": body.request_id, "attempt_id": body.attempt_id}
    return {"subject": body.by, "action": "take_secrets", "after": json_text(after)}


def _erased(body: h.SecretsErased, execution: Row | None, call: Row | None, hold: Row | None) -> Row:
    after = {"call_id": body.call_id or None, "request_id": body.request_id or None}
    return {"subject": body.by, "action": ERASE, "after": json_text(after), "feedback": body.reason}


def _policy(call: Row | None) -> str:
    version = None if call is None else call["policy_version"]
    return f"policy:{version}" if version else "policy:none"


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# A standing rule is of one project, and its events stand among the definitions all the same.
RULE_ACTIONS = frozenset(_snake(kind.__name__) for kind in r.RULE_EVENTS)


_ENTRIES: dict[type[Message], Entry] = {
    x.ExecutionPaused: _paused,
    x.ExecutionResumed: _resumed,
    x.ExecutionCancelled: _cancelled,
    x.CommandRefused: _refused,
    x.CommandAbandoned: _abandoned,
    c.ToolCallReleased: _released,
    c.ToolCallDenied: _denied,
    c.GrantRevoked: _revoked,
    h.RollbackStarted: _rolled_back,
    r.RuleAsked: _rule_asked,
    r.RuleContradicted: _contradicted,
    h.HoldExpired: _expired,
    h.HoldClaimed: _claimed,
    h.HoldUnclaimed: _unclaimed,
    h.HoldDelegated: _delegated,
    h.HoldExtended: _extended,
    h.HoldEscalated: _escalated,
    h.DecisionRecorded: _decided,
    h.DecisionRefused: _decision_refused,
    h.HumanInputProvided: _defaulted,
    h.SecretsDelivered: _taken,
    h.SecretsErased: _erased,
}
