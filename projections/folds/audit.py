"""The audit trail: who did or decided what, to what, and on which digest.

One entry for each act of authority: a person's decision, the policy's own release or denial, a deadline that
passed, a hold handled, a run steered, a definition published, and every attempt that was refused. The modules of
`projections.folds.events` say which events are acts, and by which subject. How the call ended is not copied here;
the view `audit` joins it from the call.
"""

from typing import Any

from projections.folds.effects import Act, Before
from projections.folds.events import EFFECTS
from projections.folds.events.definitions import PUBLISHED
from projections.folds.events.executions import told_giving_up, told_refusal
from projections.folds.resources import resource_of
from projections.folds.rows import json_value, moment, place_of
from projections.tables.audit import AUDIT, AuditRow, ShownAuditRow
from projections.tables.standing_rules import StandingRuleRow
from schemas.events.executions import CommandAbandoned, CommandRefused
from schemas.ids import TENANT_WIDE, project_of_definition
from schemas.record import Event

# The project of a definition of the whole tenant, which is shown in each of its projects.
NO_PROJECT = ""


def entry_of(event: Event, before: Before) -> AuditRow | None:
    """The audit row of an event of an execution, or None if it is not an act of authority.

    Args:
        event: any event of an execution.
        before: the rows before the event: the execution's, and those of the call and the hold that it is about.
    """
    told = EFFECTS[type(event.body)].audit
    act = None if told is None else told(event.body, before)
    if act is None:
        return None
    call, hold = before.call, before.hold
    tenant, project, execution_id = place_of(event.key)
    row = _row(event, act, tenant, project)
    row["execution_id"] = execution_id
    if hold is not None:
        row["call_id"] = hold["call_id"]
    elif call is not None:
        row["call_id"] = call["call_id"]
    if act.hold_id is not None:
        row["hold_id"] = act.hold_id
    elif hold is not None:
        row["hold_id"] = hold["hold_id"]
    about = call if hold is None else hold
    if act.digest is None and about is not None:
        row["digest"] = about["digest"]
    return row


def definition_entry(
    event: Event, before: StandingRuleRow | None, after: StandingRuleRow | None
) -> AuditRow | None:
    """The audit row of an event of the definitions, or None if it is not an act of authority.

    Args:
        event: any event of the definitions.
        before: the row, before the event, of the standing rule that it is about.
        after: the row after it, if the event makes or changes a rule.
    """
    body: Any = event.body
    if isinstance(body, CommandRefused):
        project = _project_of(project_of_definition(event.key)) if before is None else before["project"]
        return _row(event, told_refusal(body), event.meta.tenant, project)
    if isinstance(body, CommandAbandoned):
        project = _project_of(project_of_definition(event.key))
        return _row(event, told_giving_up(body), event.meta.tenant, project)
    effect = PUBLISHED.get(type(body))
    if effect is None:
        return None
    if effect.makes is None and effect.rule is None:
        act = effect.audit(body, None, None)
        return _row(event, act, event.meta.tenant, _project_of(body.project))
    return None if after is None else _rule_row(event, effect.audit(body, before, after), after)


def _rule_row(event: Event, act: Act, rule: StandingRuleRow) -> AuditRow:
    """The row of an act on a standing rule: it names the decision from which the rule was made."""
    row = _row(event, act, event.meta.tenant, rule["project"])
    evidence: dict[str, Any] = json_value(rule["document"])["evidence"]
    row["execution_id"] = evidence["execution_id"]
    row["call_id"] = evidence["call_id"]
    row["hold_id"] = evidence["hold_id"]
    row["digest"] = evidence["digest"]
    return row


def _project_of(project: str) -> str:
    return NO_PROJECT if project == TENANT_WIDE else project


def audit_json(row: ShownAuditRow) -> dict[str, Any]:
    """The audit row as the APIs return it; `row` has the end of its call joined to it (the view `audit`)."""
    return _RESOURCE(row)


def _result_json(row: ShownAuditRow) -> dict[str, Any] | None:
    if row["result"] is None:
        return None
    return {
        "status": row["result"],
        "output": json_value(row["result_output"]),
        "error": row["result_error"],
        "ended_at": moment(row["result_at_ms"]),
    }


def _row(event: Event, act: Act, tenant: str, project: str) -> AuditRow:
    return {
        "tenant": tenant,
        "project": project,
        "at_ms": event.meta.at_ms,
        "event_id": event.meta.event_id,
        "subject": act.subject,
        "action": act.action,
        "execution_id": None,
        "call_id": None,
        "hold_id": None,
        "digest": act.digest or "",
        "before": act.before,
        "after": act.after,
        "feedback": act.feedback,
        "view_digest": act.view_digest,
        "dwell_ms": act.dwell_ms,
        "log_partition": event.partition,
        "log_offset": event.offset,
    }


_RESOURCE = resource_of(
    AUDIT,
    "event_id",
    "at_ms",
    "subject",
    "action",
    "execution_id",
    "call_id",
    "hold_id",
    "digest",
    "before",
    "after",
    "feedback",
    "view_digest",
    "dwell_ms",
    ("result", _result_json),
)
