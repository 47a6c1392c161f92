"""Lists, in pages."""

from collections.abc import Generator
from contextlib import closing
from typing import Any, Literal

from projections.folds.states import LIVE
from projections.queries.moment import Moment, Predicate, some_of, where
from projections.queries.paging import PageOf, bounded, page_read, read_cursor
from projections.tables.agents import AGENTS, AgentRow
from projections.tables.audit import AUDIT, ShownAuditRow
from projections.tables.calls import TOOL_CALLS, CallRow
from projections.tables.columns import R, TableOf
from projections.tables.executions import EXECUTIONS, ExecutionRow
from projections.tables.holds import HOLDS, HoldRow
from projections.tables.log import DEAD_LETTERS, DeadLetterRow

Order = Literal["ASC", "DESC"]
_LETTERS_ORDER = ("at_ms", "topic", "log_partition", "log_offset")
_LETTERS_PLACE = ", ".join(f'"{name}"' for name in _LETTERS_ORDER)
_NEWEST_LETTERS = "ORDER BY " + ", ".join(f'"{name}" DESC' for name in _LETTERS_ORDER)


def executions(
    moment: Moment,
    tenant: str,
    project: str,
    *,
    state: str | None = None,
    agent: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageOf[ExecutionRow]:
    """Executions, newest first.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    predicates: list[Predicate] = [('"state" = ?', state), ('"agent" = ?', agent)]
    live = '"ended_at_ms" IS NULL' if state in LIVE else ""
    return _page(
        moment,
        EXECUTIONS,
        (tenant, project),
        predicates,
        ("started_at_ms", "execution_id", "DESC"),
        cursor,
        limit,
        live,
    )


def holds(
    moment: Moment,
    tenant: str,
    project: str,
    *,
    status: str | None = None,
    kind: str | None = None,
    agent: str | None = None,
    assignee: str | None = None,
    execution_id: str | None = None,
    prefix: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageOf[HoldRow]:
    """Holds, longest open first.

    `prefix` is the beginning of their ids; `assignee` finds the holds delegated to or claimed by a subject.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    predicates: list[Predicate] = [
        ('"kind" = ?', kind),
        ('"agent" = ?', agent),
        ('"execution_id" = ?', execution_id),
        ('COALESCE("claimed_by", "assignee") = ?', assignee),
        ('substr("hold_id", 1, ?) = ?', None if prefix is None else (len(prefix), prefix)),
    ]
    is_open = "\"status\" = 'open'" if status == "open" else ""
    if status != "open":
        predicates.append(('"status" = ?', status))
    order: tuple[str, str, Order] = ("opened_at_ms", "hold_id", "ASC")
    return _page(moment, HOLDS, (tenant, project), predicates, order, cursor, limit, is_open)


def calls(
    moment: Moment, tenant: str, project: str, execution_id: str, cursor: str | None = None
) -> PageOf[CallRow]:
    """The calls of an execution after the cursor, in the order in which they were proposed: all that fit in a page.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    order = ("proposed_at_ms", "call_id")
    condition, values = where(
        [
            ('"tenant" = ?', tenant),
            ('"project" = ?', project),
            ('"execution_id" = ?', execution_id),
            ('("proposed_at_ms", "call_id") > (?, ?)', read_cursor(cursor)),
        ]
    )
    tail = f'{condition} ORDER BY "proposed_at_ms", "call_id"'
    rows, is_cut = some_of(moment.each(TOOL_CALLS, tail, _flat(values)))
    page = PageOf(rows, None, order)
    return page._replace(next_cursor=page.cursor_after(rows[-1])) if is_cut else page


def audit(
    moment: Moment,
    tenant: str,
    project: str,
    *,
    subject: str | None = None,
    since_ms: int | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageOf[ShownAuditRow]:
    """Audit rows from a moment on, oldest first, each with the `result` of its call if that has ended.

    Definitions of the whole tenant are shown in each of its projects.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    mark = read_cursor(cursor)
    condition, values = where(
        [
            ('a."tenant" = ?', tenant),
            ("a.\"project\" IN (?, '')", project),
            ('a."subject" = ?', subject),
            ('a."at_ms" >= ?', since_ms),
            ('(a."at_ms", a."event_id") > (?, ?)', mark),
        ]
    )
    count = bounded(limit)
    tail = f'{condition} ORDER BY a."at_ms", a."event_id" LIMIT {count + 1}'
    return page_read(_audit_rows(moment, tail, _flat(values)), count, "at_ms", "event_id")


def agents(moment: Moment, tenant: str, project: str) -> list[AgentRow]:
    """Counters of each agent with each tool; refused commands are counted under an empty tool."""
    tail = 'WHERE "tenant" = ? AND "project" = ? ORDER BY "agent", "tool"'
    return moment.select(AGENTS, tail, (tenant, project))


def agent_evidence(moment: Moment, tenant: str, project: str, agent: str) -> list[AgentRow]:
    """Counters of one agent with each tool: those behind its trust."""
    tail = 'WHERE "tenant" = ? AND "project" = ? AND "agent" = ? ORDER BY "tool"'
    return moment.select(AGENTS, tail, (tenant, project, agent))


def dead_letters(
    moment: Moment,
    tenant: str,
    project: str,
    *,
    whole: bool,
    shared_topic: str,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageOf[DeadLetterRow]:
    """The newest dead letters of a project; the tenant's letters without a project only with `whole`.

    Args:
        moment: the views.
        tenant: the tenant.
        project: the project.
        whole: whether letters without a project are wanted too.
        shared_topic: the topic whose keys name a project only if they have four parts.
        cursor: of the page before.
        limit: how many at most.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    mine = f"{tenant}/{project}/"
    slashes = "length(\"log_key\") - length(replace(\"log_key\", '/', ''))"
    names_project = f'CASE WHEN "topic" = ? THEN {slashes} = 3 ELSE {slashes} >= 2 END'
    of_none = f"OR NOT ({names_project})" if whole else ""
    condition = f'"tenant" = ? AND ((substr("log_key", 1, ?) = ? AND {names_project}) {of_none})'
    values = (tenant, len(mine), mine, *[shared_topic] * (1 + whole))
    return _letters(moment, [(condition, values)], cursor, limit)


def all_dead_letters(
    moment: Moment, cursor: str | None = None, limit: int | None = None
) -> PageOf[DeadLetterRow]:
    """The newest dead letters of the whole installation; they contain what tenants wrote: not for everyone.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    return _letters(moment, [], cursor, limit)


def _letters(
    moment: Moment, predicates: list[Predicate], cursor: str | None, limit: int | None
) -> PageOf[DeadLetterRow]:
    mark = read_cursor(cursor, (int, str, int, int))
    condition, values = where([*predicates, (f"({_LETTERS_PLACE}) < (?, ?, ?, ?)", mark)])
    count = bounded(limit)
    tail = f"{condition} {_NEWEST_LETTERS} LIMIT {count + 1}"
    return page_read(moment.each(DEAD_LETTERS, tail, _flat(values)), count, *_LETTERS_ORDER)


def planted_calls(
    moment: Moment, tenant: str, project: str, *, cursor: str | None = None, limit: int | None = None
) -> PageOf[CallRow]:
    """The calls that operators planted, newest first.

    Raises:
        BadCursor: the cursor is not one of this list.
    """
    order: tuple[str, str, Order] = ("proposed_at_ms", "call_id", "DESC")
    return _page(moment, TOOL_CALLS, (tenant, project), [], order, cursor, limit, '"probe" IS NOT NULL')


def _page(
    moment: Moment,
    table: TableOf[R],
    owner: tuple[str, str],
    predicates: list[Predicate],
    order: tuple[str, str, Order],
    cursor: str | None,
    limit: int | None,
    constant: str,
) -> PageOf[R]:
    at, row_id, direction = order
    beyond = ">" if direction == "ASC" else "<"
    condition, values = where(
        [
            ('"tenant" = ?', owner[0]),
            ('"project" = ?', owner[1]),
            *predicates,
            (f'("{at}", "{row_id}") {beyond} (?, ?)', read_cursor(cursor)),
        ]
    )
    # Written as a constant, so that the partial index is used.
    only = f" AND {constant}" if constant else ""
    count = bounded(limit)
    tail = f'{condition}{only} ORDER BY "{at}" {direction}, "{row_id}" {direction} LIMIT {count + 1}'
    return page_read(moment.each(table, tail, _flat(values)), count, at, row_id)


def _audit_rows(moment: Moment, tail: str, values: tuple[Any, ...]) -> Generator[ShownAuditRow, None, None]:
    columns = ", ".join(f'a."{name}"' for name in AUDIT.names)
    text = f"SELECT {columns} FROM {moment.dialect.prefix}{AUDIT.name} a {tail}"  # noqa: S608 – names of tables.py
    with closing(moment.stream(text.replace("?", moment.dialect.placeholder), values)) as rows:
        yield from map(AUDIT.made, rows)


def _flat(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(part for value in values for part in (value if isinstance(value, tuple) else (value,)))
