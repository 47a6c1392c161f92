"""The trust in every agent by days, computed from the facts in the views."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import groupby

from projections.folds.people import with_published
from projections.folds.trust_classes import ClosingRows, by_class, placed_fact
from projections.folds.trust_days import days
from projections.queries.moment import Moment
from projections.tables.analytics import EVIDENCE, EvidenceRow
from projections.tables.definitions import DEFINITIONS
from projections.tables.trust_days import TrustDayRow
from schemas.principals import People
from schemas.topics import DAY_MS
from schemas.trust_score import discounting

_EPOCH = date(1970, 1, 1)
_OF_CLASS = ("tenant", "project", "agent", "tool", "trust_class")


def people_now(moment: Moment) -> People:
    """The people as the newest published principals define them."""
    people = People()
    for row in moment.each(DEFINITIONS, 'WHERE "kind" = ? ORDER BY "log_offset"', ("principal",)):
        people = with_published(people, row["tenant"], row["project"], row["name"], row["document"])
    return people


def trust_days(moment: Moment, now_ms: int) -> Iterator[TrustDayRow]:
    """The trust in each class of every agent's calls at the end of each day, up to today's.

    As in `placet trust explain --at`, accounts that are withdrawn today are discounted on every day. The row of today
    is as if nothing more happened today.

    All facts of one agent with one tool are in memory at a time (not those of the others), since what is contrary to
    one class can count for another: memory grows with the facts of the busiest pair.

    Args:
        moment: the views.
        now_ms: the time now, milliseconds since 1970.

    Yields:
        The rows by tenant, project, agent, tool, class and day.
    """
    people, today = people_now(moment), now_ms // DAY_MS
    order = ", ".join(f'"{name}"' for name in (*_OF_CLASS, "log_partition", "log_offset"))
    rows = moment.each(EVIDENCE, f"WHERE fact IS NOT NULL ORDER BY {order}")
    for _, found in groupby(rows, _tool_of):
        groups = by_class(found)
        closing = ClosingRows(groups)
        for name, facts in groups.items():
            yield from _rows(facts, closing.of(name), people, today)


def _tool_of(row: EvidenceRow) -> tuple[str, str, str, str]:
    return row["tenant"], row["project"], row["agent"], row["tool"]


def _rows(
    facts: list[EvidenceRow], closing: list[EvidenceRow], people: People, today: int
) -> Iterator[TrustDayRow]:
    first = facts[0]
    discounted = discounting(people.of(first["tenant"], first["project"]))
    closed_by = [[placed_fact(row) for row in found] for found in by_class(closing).values()]
    for one in days([placed_fact(row) for row in facts], today, discounted, closed_by):
        yield {
            "tenant": first["tenant"],
            "project": first["project"],
            "agent": first["agent"],
            "tool": first["tool"],
            "trust_class": first["trust_class"] or "",
            "day": (_EPOCH + timedelta(days=one.day)).isoformat(),
            "at_ms": one.at_ms,
            "lower_bound": one.posterior.lower_bound,
            "raising": one.posterior.raising,
            "lowering": one.posterior.lowering,
            "facts": one.facts,
        }
