"""Published policies, tools and principals, by version; and the effects of the definitions' events."""

from typing import Any, NamedTuple

from projections.folds.audit import definition_entry
from projections.folds.effects import New, new
from projections.folds.events.definitions import PUBLISHED
from projections.folds.events.definitions import RETIRED as RETIRED
from projections.folds.standing_rules import standing_rule_row
from projections.tables.audit import AUDIT_ENTRIES
from projections.tables.definitions import DEFINITIONS, DefinitionRow
from projections.tables.standing_rules import StandingRuleRow
from schemas.events.definitions import ToolPublished
from schemas.events.executions import CommandRefused
from schemas.message import Message
from schemas.record import Event

KINDS: dict[type[Message], str] = {kind: one.kind for kind, one in PUBLISHED.items() if one.kind}


class FoldedDefinition(NamedTuple):
    """The effect of an event of the definitions: the standing rule after it, and the rows that it adds."""

    rule: StandingRuleRow | None
    rows: list[New]


def fold_definition(event: Event, rule: StandingRuleRow | None) -> FoldedDefinition:
    """The effect of an event of the definitions.

    Args:
        event: any event of the definitions.
        rule: the row, before the event, of the standing rule that it is about (`rule_named`).

    Raises:
        RuleRefused: its document is not a valid standing rule.
    """
    after = standing_rule_row(rule, event) if is_about_rule(event.body) else None
    rows = [] if (row := definition_row(event)) is None else [new(DEFINITIONS, row)]
    if (entry := definition_entry(event, rule, after)) is not None:
        rows.append(new(AUDIT_ENTRIES, entry))
    return FoldedDefinition(after, rows)


def is_about_rule(body: Message) -> bool:
    """Returns True if an event makes or changes a standing rule."""
    effect = PUBLISHED.get(type(body))
    return effect is not None and (effect.makes is not None or effect.rule is not None)


def rule_named(body: Message) -> str:
    """The id of the standing rule that an event of the definitions is, or can be, about; empty for none."""
    fields = body.__dict__
    return str(fields["subject_id"] if isinstance(body, CommandRefused) else fields.get("rule_id", ""))


def definition_row(event: Event) -> DefinitionRow | None:
    """The row of a published version, or of a policy's retirement; its project is `*` if it belongs to the tenant."""
    body: Any = event.body
    effect = PUBLISHED.get(type(body))
    if effect is None or effect.document is None:
        return None
    return {
        "tenant": event.meta.tenant,
        "project": body.project,
        "kind": effect.kind,
        "name": body.name,
        "version": body.version,
        "tool_version": body.tool_version if isinstance(body, ToolPublished) else "",
        "document": effect.document(body),
        "published_by": body.by,
        "published_at_ms": event.meta.at_ms,
        "log_offset": event.offset,
        "event_id": event.meta.event_id,
        "command_id": event.meta.command_id,
    }
