"""The trust in an agent by classes of its calls, recomputed from the facts in the views."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from projections.folds.rows import json_value, moment
from projections.tables.analytics import EvidenceRow
from schemas.risk_score import are_weighed, score_of
from schemas.trust import ClassFact
from schemas.trust_family import closes, family_of, risk_parts_of
from schemas.trust_score import (
    CONTRARY,
    KEPT_NAMES_MAX_BYTES,
    RAISES,
    Placed,
    Posterior,
    Weighed,
    kept,
    lower_bound,
    total,
    weighed,
    weight,
)

Discounted = Callable[[ClassFact], bool]


class TrustClass(NamedTuple):
    """A class of an agent's calls of a tool: its score and the facts behind it, also those of other classes."""

    tool: str
    name: str
    rows: Sequence[EvidenceRow]
    facts: Sequence[Weighed]
    score: Posterior

    @property
    def mark(self) -> tuple[str, str]:
        """Its place in the list of classes."""
        return self.tool, self.name


def trust_classes(rows: Iterable[EvidenceRow], now_ms: int, discounted: Discounted) -> list[TrustClass]:
    """Each class with its score, by tool and name.

    Args:
        rows: the facts, those of a class together (`projections.queries.trust`).
        now_ms: the time for which they are weighed.
        discounted: as for `schemas.trust_score.weighed`.
    """
    found: list[TrustClass] = []
    for tool, of_tool in groupby(rows, lambda row: row["tool"]):
        groups = by_class(of_tool)
        closing = ClosingRows(groups)
        for name in sorted(groups):
            all_rows = [*groups[name], *closing.of(name)]
            facts = weighed([placed_fact(row) for row in all_rows], now_ms, discounted)
            found.append(TrustClass(str(tool), name, all_rows, facts, total(facts)))
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


class ClosingRows:
    """The contrary facts of a tool's classes, which count for others of these classes (`schemas.trust_family`)."""

    def __init__(self, groups: Mapping[str, list[EvidenceRow]]) -> None:
        """Find them in the rows of each class."""
        # By the terms, which such classes share: an agent can have thousands of classes.
        self._of_terms: dict[str, dict[str, list[EvidenceRow]]] = {}
        for name in sorted(groups):
            if contrary := [row for row in groups[name] if row["fact"] in CONTRARY]:
                self._of_terms.setdefault(family_of(name).terms, {})[name] = contrary

    def of(self, name: str) -> list[EvidenceRow]:
        """The facts of other classes that count for a class."""
        alike = self._of_terms.get(family_of(name).terms, {})
        return [row for other, rows in alike.items() if other != name and closes(other, name) for row in rows]


def agent_score(classes: Iterable[TrustClass]) -> float:
    """The score of an agent over all classes together: for people to compare agents, and never used for a release."""
    scores = [one.score for one in classes]
    return lower_bound(sum(one.raising for one in scores), sum(one.lowering for one in scores))


def class_json(
    one: TrustClass,
    now_ms: int,
    discounted: Discounted,
    *,
    with_facts: bool,
    name_of: Callable[[str], str] = str,
) -> dict[str, Any]:
    """A class as the API returns it.

    Args:
        one: the class.
        now_ms: as for `trust_classes`.
        discounted: as for `trust_classes`.
        with_facts: whether it lists its facts, in the order of time.
        name_of: the person behind an account (`schemas.principals`).
    """
    told = []
    if with_facts:
        # In one partition the order of the log; between two only time says what came first.
        pairs = zip(one.rows, one.facts, strict=True)
        ordered = sorted(pairs, key=lambda pair: (pair[0]["at_ms"], *_place(pair[0])))
        told = [_fact(row, fact, _uncounted(fact, now_ms, discounted, name_of)) for row, fact in ordered]
    return {
        "tool": one.tool,
        "trust_class": one.name,
        **one.score._asdict(),
        "required": _required(one.name),
        "facts": len(one.facts),
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
