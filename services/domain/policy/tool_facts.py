"""The facts of a tool before any rule is read: its hints and its risk, cached by its version."""

from collections.abc import Mapping
from typing import Any

import msgspec

from services.domain.policy.annotations import CLAIMABLE, published, raised
from services.domain.policy.risk import Risk, risk_of

_CACHE_SIZE = 4096
_cache: dict[tuple[str, str, tuple[str, ...]], tuple["ToolView", ...]] = {}


class ToolView(msgspec.Struct, frozen=True):
    """A tool in the form that rules use: `variable` is CEL's `tool`, `risk_variable` CEL's `risk`."""

    hints: dict[str, bool]
    risk: Risk
    variable: dict[str, Any]
    risk_variable: dict[str, Any]


def tool_views(
    tool: str, definition: Mapping[str, Any] | None, version: str, claimed: Mapping[str, Any]
) -> tuple[ToolView, ...]:
    """The tool as published and, if the agent's claims make it more dangerous, also as claimed (last).

    Args:
        tool: the tool's name.
        definition: the published definition; None for an unknown tool.
        version: SHA-256 of the definition, the cache key; empty: not cached.
        claimed: the agent's own annotations.
    """
    claims = tuple(name for name in CLAIMABLE if claimed.get(name) is True)
    key = (tool, version, claims)
    found = _cache.get(key) if version else None
    if found is None:
        found = _views(tool, definition, version, dict.fromkeys(claims, True))
        if version:
            if len(_cache) >= _CACHE_SIZE:
                _cache.clear()
            _cache[key] = found
    return found


def _views(
    tool: str, definition: Mapping[str, Any] | None, version: str, claims: Mapping[str, bool]
) -> tuple[ToolView, ...]:
    hints = published(definition)
    claimed = raised(hints, claims)
    variants = (hints,) if claimed == hints else (hints, claimed)
    return tuple(_view(tool, definition, version, variant) for variant in variants)


def _view(tool: str, definition: Mapping[str, Any] | None, version: str, hints: dict[str, bool]) -> ToolView:
    risk = risk_of(tool, definition, hints)
    variable = {"name": tool, "version": version, "known": definition is not None, "annotations": hints}
    return ToolView(hints, risk, variable, msgspec.to_builtins(risk))
