"""The page of all commands, for services that send them over Kafka: from the Avro registry and the models."""

from __future__ import annotations

from typing import Any

import orjson

from gateway.docs_gen.log import may_send
from schemas.codec import SUBJECTS
from schemas.command_rules import Rules, rules_of
from schemas.commands import COMMANDS, DefinitionCommand, ReserveRuleUse
from schemas.message import Message
from schemas.registry import builtin

_DEFINITIONS: tuple[type[Message], ...] = DefinitionCommand.__args__


def command_sections() -> list[str]:
    """Return a section for each command: its purpose, its topic and senders, and its fields."""
    lines: list[str] = []
    for model in COMMANDS:
        entry = builtin().latest(SUBJECTS[model])
        lines += [f"### `{model.__name__}`", "", _said(model), ""]
        lines += [f"{_place(model)}; by {' or '.join(may_send(model))}. Schema {entry.schema_id}.", ""]
        fields = entry.schema["fields"]
        if fields:
            rules = rules_of(model)
            rows = [_row(field, rules.get(field["name"], Rules())) for field in fields]
            lines += ["| field | type | |", "|---|---|---|", *rows, ""]
    return lines


def _said(model: type[Message]) -> str:
    return " ".join((model.__doc__ or "").split())


def _place(model: type[Message]) -> str:
    if model in _DEFINITIONS:
        return "`placet.definition-commands`, key `{tenant}/{kind}/{name}`"
    if model is ReserveRuleUse:
        return "`placet.commands`, key `{tenant}/{project}/rule/{rule_id}`"
    return "`placet.commands`, key `{tenant}/{project}/{execution_id}`"


def _row(field: dict[str, Any], rules: Rules) -> str:
    rule = _rule(rules)
    said = "; ".join(filter(None, (str(field.get("doc", "")).replace("|", "\\|"), rule)))
    if "default" in field:
        # Every field of the schema is in the bytes; this is its value if there is nothing to send.
        none = _default(field["default"])
        said = f"{said}; {none} if there is none" if said else f"{none} if there is none"
    return f"| `{field['name']}` | {_type(field['type'])} | {said} |"


def _default(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    return "empty" if value == [] else f"`{orjson.dumps(value).decode()}`"


def _rule(rules: Rules) -> str:
    """Return the rule by which the decider checks the field, whichever interface it came through."""
    own = rules.form or rules.range
    limit = None if rules.limit is None else f"at most {rules.limit.most:,} {rules.limit.unit}"
    has_it = rules.form is not None and rules.form.bounds
    return "; ".join(filter(None, (own and own.rule, None if has_it else limit)))


def _type(kind: Any) -> str:
    if isinstance(kind, list):
        return " or ".join(_type(one) for one in kind)
    if isinstance(kind, dict):
        inner = kind.get("items", kind.get("values"))
        return f"{kind['type']} of {_type(inner)}" if inner is not None else str(kind["type"])
    return str(kind)
