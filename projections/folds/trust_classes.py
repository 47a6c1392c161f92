"""The trust in an agent by classes of its calls, recomputed from the facts in the views."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from projections.folds.rows import json_value, moment
from projections.tables.analytics import EvidenceRow
from schemas.risk_score import are_weighed, score_of
from schemas.trust import ClassFact
from schemas.trust_family import closes, risk_parts_of
from schemas.trust_score import (
    CONTRARY,
    KEPT_NAMES_MAX_BYTES,
    RAISES,
    Placed,
    Weighed,
    kept,
    lower_bound,
    total,
    weighed,
    weight,
)

Discounted = Callable[[ClassFact], bool]


def trust_classes(
    rows: Iterable[EvidenceRow],
    now_ms: int,
    discounted: Discounted,
    *,
    with_facts: bool,
    name_of: Callable[[str], str] = str,
) -> list[dict[str, Any]]:
    """Each class with its score, as the API returns it.

    Args:
        rows: the facts, those of a class together (`projections.queries.trust`).
        now_ms: the time for which they are weighed.
        discounted: as for `schemas.trust_score.weighed`.
        with_facts: whether each class lists its facts, in the order of time.
        name_of: the person behind an account (`schemas.principals`).
    """
    found: list[dict[str, Any]] = []
    for tool, of_tool in groupby(rows, lambda row: row["tool"]):
        groups = by_class(of_tool)
        for name in groups:
            facts = [*groups[name], *closing_rows(groups, name)]
            found.append(_class(str(tool), name, facts, now_ms, discounted, with_facts, name_of))
    return found


def by_class(rows: Iterable[EvidenceRow]) -> dict[str, list[EvidenceRow]]:
    """The rows of a tool by their class."""
    classes = groupby(rows, lambda row: row["trust_class"])
    return {str(name): _kept([*found]) for name, found in classes}


def _kept(rows: list[EvidenceRow]) -> list[EvidenceRow]:
    """The rows of a class that its parts keep (`schemas.trust_score.kept`); how many, the query has seen to."""
    if (
        sum(len(row["words_of"] or "") + len(row["requester"] or "") for row in rows)
        < KEPT_NAMES_MAX_BYTES // 4
    ):
        return rows
    of_partitions = groupby(rows, lambda row: row["log_partition"])
    return [row for _, found in of_partitions for row in _kept_of([*found])]


def _kept_of(rows: list[EvidenceRow]) -> list[EvidenceRow]:
    offsets = {fact.offset for fact in kept(placed_fact(row).fact for row in rows)}
    return [row for row in rows if row["log_offset"] in offsets]


def closing_rows(groups: Mapping[str, list[EvidenceRow]], name: str) -> list[EvidenceRow]:
    """The contrary facts of other classes that count for a class (`schemas.trust_family`)."""
    closing = sorted(other for other in groups if other != name and closes(other, name))
    return [row for other in closing for row in groups[other] if row["fact"] in CONTRARY]


def agent_score(classes: Iterable[dict[str, Any]]) -> float:
    """The score of an agent over all classes together: for people to compare agents, and never used for a release."""
    found = list(classes)
    raising = sum(one["raising"] for one in found)
    return lower_bound(raising, sum(one["lowering"] for one in found))


def _class(
    tool: str,
    name: str,
    rows: list[EvidenceRow],
    now_ms: int,
    discounted: Discounted,
    with_facts: bool,
    name_of: Callable[[str], str],
) -> dict[str, Any]:
    facts = weighed([placed_fact(row) for row in rows], now_ms, discounted)
    found = total(facts)
    told = []
    if with_facts:
        # In one partition the order of the log; between two only time says what came first.
        ordered = sorted(zip(rows, facts, strict=True), key=lambda pair: (pair[0]["at_ms"], *_place(pair[0])))
        told = [_fact(row, one, _uncounted(one, now_ms, discounted, name_of)) for row, one in ordered]
    return {
        "tool": tool,
        "trust_class": name,
        **found._asdict(),
        "required": _required(name),
        "facts": len(facts),
        "evidence": told,
    }


def _required(trust_class: str) -> float | None:
    """The trust that the parts of the risk in a class require; None if this version does not know one of them."""
    parts = risk_parts_of(trust_class)
    return score_of(parts).required if parts is not None and are_weighed(parts) else None


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


def _place(row: EvidenceRow) -> tuple[int, int]:
    return row["log_partition"], row["log_offset"]


def _uncounted(
    one: Weighed, now_ms: int, discounted: Discounted, name_of: Callable[[str], str]
) -> str | None:
    """Why a fact does not raise trust although it is of a kind that does."""
    fact = one.placed.fact
    if one.raising or fact.kind not in RAISES:
        return None
    if not weight(fact.at_ms, now_ms):
        return "too_old"
    if discounted(fact):
        is_own = name_of(fact.requester) in map(name_of, fact.by)
        return "own_proposal" if is_own else "withdrawn_account"
    return "before_it_began_anew"


def _fact(row: EvidenceRow, one: Weighed, uncounted: str | None) -> dict[str, Any]:
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
        "uncounted": uncounted,
    }
