"""The effects of the definitions' events: publishing, retirement, data keys, and standing rules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from projections.folds.acts import DESTROY_KEY, snake
from projections.folds.effects import Act, B
from projections.folds.rows import json_text
from projections.tables.standing_rules import StandingRuleRow
from schemas.events import definitions as d
from schemas.events import rules as r
from schemas.message import Message
from schemas.record import Event
from schemas.standing_rule import standing_rule_from_text

RETIRED = "policy-retired"
_Version = d.PolicyPublished | d.ToolPublished | d.PrincipalPublished | d.PolicyRetired
_Change = r.RuleActivated | r.RuleSuspended | r.RuleRevoked


@dataclass(frozen=True, slots=True)
class Published(Generic[B]):
    """The effects of events of one type.

    An event with a `kind` has a row of the definitions, with the document that `document` makes of it. `makes` and
    `rule` are for standing rules: `rule` changes a row in place, which is a copy made for it. `audit` returns who did
    what; it gets a rule's row before and after, if there is one.
    """

    of: type[B]
    audit: Callable[[B, StandingRuleRow | None, StandingRuleRow | None], Act]
    kind: str = ""
    document: Callable[[B], str] | None = None
    makes: Callable[[B, Event], StandingRuleRow] | None = None
    rule: Callable[[StandingRuleRow, B, Event], None] | None = None


def _told_version(kind: str) -> Callable[[_Version, object, object], Act]:
    def told(body: _Version, before: object, after: object) -> Act:
        was = None if body.version == 1 else json_text({"name": body.name, "version": body.version - 1})
        digest = body.tool_version if isinstance(body, d.ToolPublished) else ""
        return Act(body.by, f"publish_{kind}", before=was, after=_version(body), digest=digest)

    return told


def _told_retirement(body: d.PolicyRetired, before: object, after: object) -> Act:
    return Act(body.by, "retire_policy", before=_version(body), feedback=body.reason)


def _told_destruction(body: d.DataKeyDestroyed, before: object, after: object) -> Act:
    return Act(body.by, DESTROY_KEY, after=json_text({"name": body.name}), feedback=body.reason)


def _version(body: _Version) -> str:
    return json_text({"name": body.name, "version": body.version})


def _make(body: r.RuleMade, event: Event) -> StandingRuleRow:
    document = standing_rule_from_text(body.document)
    return {
        "tenant": event.meta.tenant,
        "rule_id": body.rule_id,
        "project": document.project,
        "agent": document.agent,
        "tool": document.tool,
        "status": body.status,
        "reason": body.reason,
        "document": body.document,
        "policy_rules": json_text(document.policy_rules),
        "uses": document.uses,
        "expires_at_ms": document.expires_at_ms,
        "made_by": body.by,
        "made_at_ms": event.meta.at_ms,
        "changed_by": body.by,
        "contradiction": None,
        "updated_at_ms": event.meta.at_ms,
        "log_offset": event.offset,
    }


def _told_making(body: r.RuleMade, before: StandingRuleRow | None, after: StandingRuleRow | None) -> Act:
    return Act(body.by, _action(body), before=_status(before), after=body.document, feedback=body.reason)


def _activate(row: StandingRuleRow, body: r.RuleActivated, event: Event) -> None:
    _change(row, "active", body, event)


def _suspend(row: StandingRuleRow, body: r.RuleSuspended, event: Event) -> None:
    _change(row, "suspended", body, event)
    row["contradiction"] = body.evidence


def _revoke(row: StandingRuleRow, body: r.RuleRevoked, event: Event) -> None:
    _change(row, "revoked", body, event)


def _change(row: StandingRuleRow, status: str, body: _Change, event: Event) -> None:
    row.update(
        {
            "status": status,
            "reason": body.reason,
            "changed_by": body.by,
            "updated_at_ms": event.meta.at_ms,
            "log_offset": event.offset,
        }
    )


def _told_change(body: _Change, before: StandingRuleRow | None, after: StandingRuleRow | None) -> Act:
    return Act(body.by, _action(body), before=_status(before), after=_status(after), feedback=body.reason)


def _action(body: Message) -> str:
    return snake(type(body).__name__)


def _status(row: StandingRuleRow | None) -> str | None:
    return None if row is None else json_text({"rule_id": row["rule_id"], "status": row["status"]})


EFFECTS = (
    Published(d.PolicyPublished, _told_version("policy"), kind="policy", document=lambda body: body.document),
    Published(d.ToolPublished, _told_version("tool"), kind="tool", document=lambda body: body.definition),
    Published(
        d.PrincipalPublished,
        _told_version("principal"),
        kind="principal",
        document=lambda body: body.document,
    ),
    Published(
        d.PolicyRetired,
        _told_retirement,
        kind=RETIRED,
        document=lambda body: json_text({"reason": body.reason}),
    ),
    Published(d.DataKeyDestroyed, _told_destruction),
    Published(r.RuleMade, _told_making, makes=_make),
    Published(r.RuleActivated, _told_change, rule=_activate),
    Published(r.RuleSuspended, _told_change, rule=_suspend),
    Published(r.RuleRevoked, _told_change, rule=_revoke),
)
PUBLISHED: dict[type[Message], Published[Any]] = {one.of: one for one in EFFECTS}
# A standing rule belongs to one project, but its events are among the definitions.
RULE_ACTIONS = frozenset(snake(one.of.__name__) for one in EFFECTS if one.makes or one.rule)
