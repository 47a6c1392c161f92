"""What became of the holds for which a policy's adaptive block weighed trust."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from projections.folds.approval import WeighedHolds
from projections.queries.moment import Moment
from projections.tables.analytics import TRUST_VERDICTS, VOTES
from projections.tables.calls import TOOL_CALLS
from projections.tables.holds import HOLDS


def weighed_holds(
    moment: Moment, tenant: str, project: str, *, since_ms: int, agent: str | None = None
) -> WeighedHolds:
    """The counts of a project since a moment, of one agent or of all."""
    ask = _Question(moment, (tenant, project, since_ms, *(() if agent is None else (agent,))))
    results = ask("agent, result, COUNT(*)", "GROUP BY agent, result ORDER BY agent, result")
    # What people say of a call in doubt settles what it had done, and is no word on the sample.
    in_doubt = (
        f"SELECT 1 FROM {moment.dialect.prefix}{HOLDS.name} AS hold WHERE hold.tenant = mine.tenant AND "  # noqa: S608
        "hold.project = mine.project AND hold.hold_id = other.hold_id AND hold.cause = 'outcome_unknown'"
    )
    sampled = ask(
        "other.decision, COUNT(*)",
        "AND mine.result = 'sampled' AND other.outcome = 'decided' "
        f"AND NOT EXISTS ({in_doubt}) GROUP BY other.decision",
        beside=VOTES.name,
    )
    unsaid = ask(
        "other.status, COUNT(*)",
        "AND result = 'sampled' AND other.decision_id IS NULL AND other.status IN ('held', 'cancelled', 'expired') "
        "GROUP BY other.status",
        beside=TOOL_CALLS.name,
    )
    ((released, revoked, harmful),) = ask(
        "COUNT(*), COALESCE(SUM(CASE WHEN other.status = 'revoked' THEN 1 ELSE 0 END), 0), "
        "COALESCE(SUM(CASE WHEN other.impact_reports > 0 THEN 1 ELSE 0 END), 0)",
        "AND mine.result = 'released'",
        beside=TOOL_CALLS.name,
    )
    return WeighedHolds(
        [(str(name), str(result), int(number)) for name, result, number in results],
        {str(decision): int(number) for decision, number in sampled},
        {str(status): int(number) for status, number in unsaid},
        int(released),
        int(revoked),
        int(harmful),
    )


def waiting_samples(moment: Moment, tenant: str, project: str, agent: str) -> list[tuple[str, str, int, int]]:
    """The sampled calls of an agent that wait for people: tool, class, and the verdict's partition and offset."""
    rows = _Question(moment, (tenant, project, 0, agent))(
        "mine.tool, mine.trust_class, mine.log_partition, mine.log_offset",
        "AND mine.result = 'sampled' AND other.status = 'held' ORDER BY mine.log_partition, mine.log_offset",
        beside=TOOL_CALLS.name,
    )
    return [(str(tool), str(of_class), int(number), int(offset)) for tool, of_class, number, offset in rows]


class _Question(NamedTuple):
    """Questions about the verdicts of one project and period, and what is beside them in another table."""

    moment: Moment
    values: tuple[Any, ...]

    def __call__(self, columns: str, tail: str, beside: str | None = None) -> Sequence[Sequence[Any]]:
        prefix, mark = self.moment.dialect.prefix, self.moment.dialect.placeholder
        tables = f"{prefix}{TRUST_VERDICTS.name} AS mine"
        if beside is not None:
            same = ("tenant", "project", "execution_id", "call_id", "revision")
            tables += f" JOIN {prefix}{beside} AS other ON "
            tables += " AND ".join(f"other.{name} = mine.{name}" for name in same)
        one_agent = " AND mine.agent = ?" if len(self.values) > 3 else ""
        text = (
            f"SELECT {columns} FROM {tables} "  # noqa: S608 – names of tables.py
            f"WHERE mine.tenant = ? AND mine.project = ? AND mine.at_ms >= ?{one_agent} {tail}"
        )
        return self.moment.execute(text.replace("?", mark), self.values)
