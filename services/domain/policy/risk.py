"""Risk: the possible cost of a wrong call, computed from published definitions only.

For trust that may release a call, the history of its values adds parts (`with_history`); rules see the risk without
them, so that no rule depends on how far trust has been counted. What the parts are worth is in `schemas.risk_score`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from schemas.risk_score import UNKNOWN_TOOL, RiskLevel, are_weighed, score_of

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MONEY_WORDS = "amount money pay payment payments price refund transfer invoice iban currency salary fee"
_CODE_WORDS = "bash cmd code command eval exec javascript powershell python script shell sql terminal"
# Words of a task's description that say more than the names of its tools do.
_DESTRUCTIVE_WORDS = "delete remove drop destroy erase wipe purge overwrite"
_MONEY = frozenset(_MONEY_WORDS.split())
_CODE = frozenset(_CODE_WORDS.split())
_DESTRUCTIVE = frozenset(_DESTRUCTIVE_WORDS.split())


class Risk(msgspec.Struct, frozen=True):
    """A call's risk: score and required in 0..1, and the named parts that make the score."""

    score: float
    level: RiskLevel
    parts: tuple[str, ...]
    required: float


def risk_of(tool: str, definition: Mapping[str, Any] | None, hints: Mapping[str, bool]) -> Risk:
    """The risk of calling a tool.

    Args:
        tool: the tool's name.
        definition: the published definition; None for an unknown tool.
        hints: the four hints, with the agent's claims (see `annotations.raised`).
    """
    parts = tuple(sorted(_parts(tool, definition, hints)))
    return _risk(parts, is_known=definition is not None)


def with_history(risk: Risk, parts: Iterable[str], *, is_known: bool) -> Risk:
    """The risk of a call, with what the history of its values adds; `is_known`: its tool is published."""
    found = tuple(parts)
    if not found:
        return risk
    return _risk(tuple(sorted((*risk.parts, *found))), is_known=is_known)


def of_task(risks: Iterable[Risk], description: str = "") -> Risk:
    """The risk of a task of several calls: each part of any of them counts once, so that it is at least the highest.

    A description is anyone's text: its words add parts, and take none away. Of a task without calls nothing is known.
    """
    found = list(risks)
    for risk in found:
        # A call that could not be judged has the highest risk, for a reason without a weight.
        if not are_weighed(risk.parts):
            return risk
    parts = {part for risk in found for part in risk.parts} | _parts_in(description)
    if not found:
        parts.add(UNKNOWN_TOOL)
    return _risk(tuple(sorted(parts)), is_known=True)


def _parts_in(text: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(text)}
    of_words = {"money": _MONEY, "runs_code": _CODE, "destructive": _DESTRUCTIVE}
    return {part for part, of_part in of_words.items() if words & of_part}


def _risk(parts: tuple[str, ...], *, is_known: bool) -> Risk:
    score, level, required = score_of(parts, is_known=is_known)
    return Risk(score, level, parts, required)


def _parts(tool: str, definition: Mapping[str, Any] | None, hints: Mapping[str, bool]) -> set[str]:
    parts = set()
    if definition is None:
        parts.add(UNKNOWN_TOOL)
    if hints["openWorldHint"]:
        parts.add("open_world")
    words = _words(tool, definition)
    if words & _CODE:
        parts.add("runs_code")
    if hints["readOnlyHint"]:
        return parts
    parts.add("writes")
    if hints["destructiveHint"]:
        parts.add("destructive")
    if not hints["idempotentHint"]:
        parts.add("not_idempotent")
    if words & _MONEY:
        parts.add("money")
    return parts


def _words(tool: str, definition: Mapping[str, Any] | None) -> set[str]:
    """The words of the tool's name and of its published parameters' names."""
    schema = (definition or {}).get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    names = [tool, *properties] if isinstance(properties, Mapping) else [tool]
    return {word.lower() for name in names for word in _WORD.findall(str(name))}
