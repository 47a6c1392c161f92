"""A question in the lines above the prompt for its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from placet.cli.answering import (
    REMEMBERED,
    YES_OR_NO,
    asks_of,
    may_be_several,
    name_shown,
    named_by,
    offered,
)
from placet.cli.viewing import until
from placet.models import Hold

# These are part of an option's name and value.
_NAMES = ("id", "label")


def purpose(hold: Hold) -> str:
    """What a permission is for: tool, action and risk; empty for all else."""
    asks = asks_of(hold)
    risk = f"{asks['risk']}, by the agent's own word" if asks.get("risk") else ""
    facts = (("tool", asks.get("tool")), ("action", asks.get("action")), ("risk", risk))
    return "; ".join(f"{name}: {told}" for name, told in facts if told)


def answers(hold: Hold) -> list[str]:
    """The answers that a question takes, what it says of them, and what happens without one; not safe to show."""
    lines = _offers(hold)
    fields = hold.raw.get("fields")
    if fields and hold.kind != "env_var":
        lines.append(f"fields: {_json(fields)}")
    if kind := hold.raw.get("decision_type"):
        lines.append(f"type: {kind}")
    if waits := until(hold):
        lines.append(f"waits until {waits}{_otherwise(hold)}")
    return lines


def _offers(hold: Hold) -> list[str]:
    if hold.call_id or not hold.options:
        found = offered(hold)
        return [f"options: {found}"] if found else []
    name, rule = _meaning(hold)
    end = f" ({rule})" if rule else ""
    more = [_more(option) for option in hold.options]
    if not any(more):
        return [f"{name}: {', '.join(map(_shown, hold.options))}{end}"]
    told = [
        f"  {_shown(option)}{f': {said}' if said else ''}"
        for option, said in zip(hold.options, more, strict=True)
    ]
    return [f"{name}{end}:", *told]


def _meaning(hold: Hold) -> tuple[str, str]:
    """What the options of a question are called, and which answers it takes."""
    if hold.kind == "clarification":
        return "suggestions", "any other text is an answer, too"
    if may_be_several(hold):
        example = json.dumps([named_by(one) for one in hold.options[:2]], ensure_ascii=False)
        own = "; texts of your own, too" if asks_of(hold).get("allow_custom") else ""
        return "options", f"several as a JSON list: {example}{own}"
    if asks_of(hold).get("allow_custom"):
        return "options", "or a text of your own"
    if hold.kind == "permission":
        further = f", or {REMEMBERED} for further times, too" if asks_of(hold).get("remember") else ""
        return "options", f"or {YES_OR_NO}{further}"
    return "options", "one of them" if hold.kind == "decision" else ""


def _shown(option: Any) -> str:
    named = name_shown(option)
    label = option.get("label") if isinstance(option, Mapping) else None
    return named if label in (None, "", named) else f"{named} ({label})"


def _more(option: Any) -> str:
    """What an option's object says beside its id and label."""
    if not isinstance(option, Mapping):
        return ""
    facts = [(name, value) for name, value in option.items() if name not in _NAMES]
    return "; ".join(f"{name}: {value if isinstance(value, str) else _json(value)}" for name, value in facts)


def _otherwise(hold: Hold) -> str:
    default = hold.raw.get("default")
    if default is None or hold.call_id:
        return ""
    return f"; then the answer is {_json(default)}"


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value
