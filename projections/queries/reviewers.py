"""How people decide: how many, how fast, and how often they approve what they have hardly looked at."""

from typing import Any, NamedTuple

from projections.queries.moment import Moment
from projections.tables.analytics import VOTES
from projections.tables.holds import HOLDS
from projections.tables.probes import PROBE_ANSWERS
from projections.tables.star import QUICK_MS

# The column of a list of reviewers → the decision that is counted there.
DECISIONS = {"approved": "approve", "edited": "edit", "rejected": "reject", "answered": "respond"}


class ProbeCounts(NamedTuple):
    """How many planted calls a person answered to, and how many of them were not caught."""

    answered: int
    missed: int


class ReviewerRow(NamedTuple):
    """A person's decisions since a moment.

    `wait_ms` is the average time from the opening of a hold to the decision, `dwell_ms` the average time that a hold
    was on the person's screen, None if none was measured. `measured` are the approvals of which it was measured, and
    `quick` those of them that took less than `QUICK_MS`.
    """

    reviewer: str
    approved: int
    edited: int
    rejected: int
    answered: int
    last_decided_at_ms: int
    wait_ms: float
    dwell_ms: float | None
    measured: int
    quick: int


def reviewers(moment: Moment, tenant: str, project: str, since_ms: int) -> list[ReviewerRow]:
    """The people who decided holds since a moment, by name; also with decisions that others had to join."""
    counts = ", ".join(
        f"SUM(CASE WHEN v.decision = '{word}' THEN 1 ELSE 0 END)" for word in DECISIONS.values()
    )
    measured = "v.decision = 'approve' AND v.dwell_ms IS NOT NULL"
    text = (
        f"SELECT v.subject, {counts}, MAX(v.at_ms), AVG(v.at_ms - h.opened_at_ms), AVG(v.dwell_ms), "  # noqa: S608 – names of tables.py
        f"SUM(CASE WHEN {measured} THEN 1 ELSE 0 END), "
        f"SUM(CASE WHEN {measured} AND v.dwell_ms < {QUICK_MS} THEN 1 ELSE 0 END) "
        f"FROM {moment.dialect.prefix}{VOTES.name} v JOIN {moment.dialect.prefix}{HOLDS.name} h "
        "ON h.tenant = v.tenant AND h.project = v.project AND h.hold_id = v.hold_id "
        "WHERE v.tenant = ? AND v.project = ? AND v.at_ms >= ? AND v.outcome IN ('decided', 'counted') "
        "GROUP BY v.subject ORDER BY v.subject"
    )
    rows = moment.execute(text.replace("?", moment.dialect.placeholder), (tenant, project, since_ms))
    return [_row(*row) for row in rows]


def probe_counts(moment: Moment, tenant: str, project: str, since_ms: int) -> dict[str, ProbeCounts]:
    """The people who answered to planted calls that ended since a moment."""
    text = (
        "SELECT subject, COUNT(*), SUM(1 - caught) "  # noqa: S608 – names of tables.py
        f"FROM {moment.dialect.prefix}{PROBE_ANSWERS.name} "
        "WHERE tenant = ? AND project = ? AND at_ms >= ? GROUP BY subject"
    )
    rows = moment.execute(text.replace("?", moment.dialect.placeholder), (tenant, project, since_ms))
    return {str(subject): ProbeCounts(int(answered), int(missed)) for subject, answered, missed in rows}


def _row(*values: Any) -> ReviewerRow:
    row = ReviewerRow(*values)
    # PostgreSQL's averages are decimals.
    return row._replace(
        wait_ms=float(row.wait_ms), dwell_ms=None if row.dwell_ms is None else float(row.dwell_ms)
    )
