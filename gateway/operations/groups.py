"""Groups of open holds that are alike: forty of one kind are reviewed as one kind, and still decided one by one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from projections.folds.holds import told_view_digest
from projections.folds.rows import json_value, moment
from projections.tables.holds import HoldRow
from schemas.call_history import history_from_text
from schemas.canonical import canonical, parse_strict

HOLDS_MAX = 1_000
# For larger arguments the shape is computed each time.
REMEMBERED_MAX_CHARS = 8_192
SHAPE_MAX_CHARS = 500


def groups_of(rows: Iterable[HoldRow]) -> list[dict[str, Any]]:
    """Return the groups of open holds, the largest first.

    Args:
        rows: the rows of the holds, longest open first.
    """
    found: dict[tuple[Any, ...], list[HoldRow]] = {}
    for row in rows:
        key = (*_alike(row), *_values_of(row).items(), shape_of(row["arguments"] or "null"))
        found.setdefault(key, []).append(row)
    ordered = sorted(found.items(), key=lambda group: (-len(group[1]), group[1][0]["opened_at_ms"]))
    return [_group(key[-1], alike) for key, alike in ordered]


def _alike(row: HoldRow) -> tuple[object, ...]:
    """The fields that are equal within a group, besides the shape of the arguments."""
    return (
        row["agent"],
        row["tool"],
        row["kind"],
        row["cause"],
        row["rules"],
        row["risk_level"],
        row["must_read"],
    )


def _values_of(row: HoldRow) -> dict[str, Any]:
    """What the past says of a call's values, without what differs from call to call."""
    history = history_from_text(row["history"])
    return {
        "parts": history.parts,
        "novel": history.novel,
        "tainted": history.tainted,
        "is_whole": history.is_whole,
        "is_known": history.is_known,
    }


def _group(shape: str, alike: list[HoldRow]) -> dict[str, Any]:
    first = alike[0]
    return {
        "agent": first["agent"],
        "tool": first["tool"],
        "kind": first["kind"],
        "cause": first["cause"],
        "rules": json_value(first["rules"]) or [],
        "risk_level": first["risk_level"],
        "must_read": bool(first["must_read"]),
        "history": _values_of(first),
        "shape": shape,
        "count": len(alike),
        "oldest_at": moment(first["opened_at_ms"]),
        "newest_at": moment(alike[-1]["opened_at_ms"]),
        "holds": [
            {
                "hold_id": row["hold_id"],
                "digest": row["digest"],
                "view_digest": told_view_digest(row),
            }
            for row in alike[:HOLDS_MAX]
        ],
    }


def shape_of(arguments: str) -> str:
    """Return what arguments that differ only in their values have in common: names and kinds, as canonical JSON."""
    return _remembered_shape(arguments) if len(arguments) <= REMEMBERED_MAX_CHARS else _shape_text(arguments)


@lru_cache(maxsize=4096)
def _remembered_shape(arguments: str) -> str:
    return _shape_text(arguments)


def _shape_text(arguments: str) -> str:
    shape = canonical(_shape(parse_strict(arguments)))
    return shape if len(shape) <= SHAPE_MAX_CHARS else shape[: SHAPE_MAX_CHARS - 1] + "…"


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        distinct = {canonical(shape): shape for shape in map(_shape, value)}
        return [distinct[text] for text in sorted(distinct)]
    return _KINDS.get(type(value), "null")


_KINDS: dict[type, str] = {str: "text", bool: "boolean", int: "number", float: "number"}
