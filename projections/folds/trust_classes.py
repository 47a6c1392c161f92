"""The trust in an agent by classes of its calls, recomputed from the facts in the views."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from projections.folds.rows import json_value, moment
from projections.tables.analytics import EvidenceRow
from schemas.trust import ClassFact
from schemas.trust_family import closing_classes
from schemas.trust_score import CONTRARY, Placed, Weighed, lower_bound, total, weighed

Discounted = Callable[[ClassFact], bool]


def trust_classes(
    rows: Iterable[EvidenceRow], now_ms: int, discounted: Discounted, *, with_facts: bool
) -> list[dict[str, Any]]:
    """Each class with its score, as the API returns it.

    Args:
        rows: the facts, those of a class together (`projections.queries.trust`).
        now_ms: the time for which they are weighed.
        discounted: as for `schemas.trust_score.weighed`.
        with_facts: whether each class lists its facts.
    """
    found: list[dict[str, Any]] = []
    for tool, of_tool in groupby(rows, lambda row: row["tool"]):
        groups = by_class(of_tool)
        for name in groups:
            facts = [*groups[name], *closing_rows(groups, name)]
            found.append(_class(str(tool), name, facts, now_ms, discounted, with_facts))
    return found


def by_class(rows: Iterable[EvidenceRow]) -> dict[str, list[EvidenceRow]]:
    """The rows of a tool by their class."""
    return {str(name): list(found) for name, found in groupby(rows, lambda row: row["trust_class"])}


def closing_rows(groups: Mapping[str, list[EvidenceRow]], name: str) -> list[EvidenceRow]:
    """The contrary facts of other classes that count for a class (`schemas.trust_family`)."""
    _, *closing = closing_classes(name)
    return [row for other in closing for row in groups.get(other, ()) if row["fact"] in CONTRARY]


def agent_score(classes: Iterable[dict[str, Any]]) -> float:
    """The score of an agent over all classes together: for people to compare agents, and never used for a release."""
    found = list(classes)
    raising = sum(one["raising"] for one in found)
    return lower_bound(raising, sum(one["lowering"] for one in found))


def _class(
    tool: str, name: str, rows: list[EvidenceRow], now_ms: int, discounted: Discounted, with_facts: bool
) -> dict[str, Any]:
    facts = weighed([placed_fact(row) for row in rows], now_ms, discounted)
    found = total(facts)
    return {
        "tool": tool,
        "trust_class": name,
        **found._asdict(),
        "facts": len(facts),
        "evidence": [_fact(row, one) for row, one in zip(rows, facts, strict=True)] if with_facts else [],
    }


def placed_fact(row: EvidenceRow) -> Placed:
    """A row of evidence as the fact that is weighed."""
    fact = ClassFact.model_validate(
        {
            "offset": row["log_offset"],
            "at_ms": row["at_ms"],
            "kind": row["fact"],
            "by": json_value(row["words_of"]),
            "requester": row["requester"] or "",
        }
    )
    return Placed(row["log_partition"], fact)


def _fact(row: EvidenceRow, one: Weighed) -> dict[str, Any]:
    return {
        "kind": row["fact"],
        "at": moment(row["at_ms"]),
        "by": list(one.placed.fact.by),
        "requester": row["requester"],
        "execution_id": row["execution_id"],
        "call_id": row["call_id"],
        "partition": row["log_partition"],
        "offset": row["log_offset"],
        "raising": round(one.raising, 6),
        "lowering": round(one.lowering, 6),
    }
