"""The facts behind the trust in an agent, as the trust role keeps them: the newest of each class and direction."""

from collections.abc import Mapping
from typing import Any, get_args

from projections.queries.moment import Moment
from projections.tables.analytics import EVIDENCE, EvidenceRow
from schemas.topics import DAY_MS
from schemas.trust import FactKind
from schemas.trust_score import KEPT_MAX, WINDOW_DAYS, group_of

# Partition → the last offset that counts.
Through = Mapping[int, int]


_GROUP = (
    "CASE " + " ".join(f"WHEN fact = '{kind}' THEN {group_of(kind)}" for kind in get_args(FactKind)) + " END"
)


def class_facts(
    moment: Moment,
    tenant: str,
    project: str,
    agent: str,
    *,
    now_ms: int,
    until_ms: int | None = None,
    tool: str | None = None,
    through: Through | None = None,
) -> list[EvidenceRow]:
    """The facts that count for classes of an agent's calls, by tool and class, then as they are in the log.

    Args:
        moment: the views.
        tenant: the agent's tenant.
        project: its project.
        agent: its name.
        now_ms: the time for which trust is asked; facts without weight by then are left out.
        until_ms: leaves out the facts after this time; None: none.
        tool: one tool; None: all.
        through: how far each partition of the log is counted; None: without a limit.
    """
    wheres, values = _wheres(until_ms, tool, through)
    table = f"{moment.dialect.prefix}{EVIDENCE.name}"
    names = ", ".join(f'"{name}"' for name in EVIDENCE.names)
    place = "PARTITION BY tool, trust_class, log_partition"
    text = (
        f"SELECT {names} FROM (SELECT {names}, "  # noqa: S608 – names of tables.py
        f"ROW_NUMBER() OVER ({place}, {_GROUP} ORDER BY log_offset DESC) AS newest, "
        f"MIN(CASE WHEN {_GROUP} < 2 THEN log_offset END) OVER ({place}) AS first_word FROM {table} "
        f"WHERE tenant = ? AND project = ? AND agent = ? AND fact IS NOT NULL {wheres}) AS facts "
        # A class begins with the first word of a person.
        f"WHERE newest <= {KEPT_MAX} AND at_ms > ? AND log_offset >= first_word "
        "ORDER BY tool, trust_class, log_partition, log_offset"
    )
    given = (tenant, project, agent, *values, now_ms - WINDOW_DAYS * DAY_MS)
    rows = moment.execute(text.replace("?", moment.dialect.placeholder), given)
    return [EVIDENCE.made(row) for row in rows]


def _wheres(until_ms: int | None, tool: str | None, through: Through | None) -> tuple[str, list[Any]]:
    wheres, values = "", list[Any]()
    if until_ms is not None:
        wheres, values = "AND at_ms <= ?", [until_ms]
    if tool is not None:
        wheres, values = f"{wheres} AND tool = ?", [*values, tool]
    if through is not None:
        places = " OR ".join("(log_partition = ? AND log_offset <= ?)" for _ in through) or "1 = 0"
        wheres = f"{wheres} AND ({places})"
        values += [number for place in through.items() for number in place]
    return wheres, values
