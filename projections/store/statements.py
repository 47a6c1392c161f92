"""SQL text made from the tables, for both dialects. Column names are quoted: some are SQL keywords."""

# Every name that is put into the text comes from `tables`; values are always parameters.
# ruff: noqa: S608

from collections.abc import Mapping
from dataclasses import dataclass

from projections.store.tables import TABLES
from projections.tables.columns import ColumnType, Index, Merge, Table

# The statuses that the audit trail shows as a call's result (projections.folds.states.TERMINAL).
_ENDED = "('denied', 'cancelled', 'expired', 'revoked', 'succeeded', 'failed')"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between the databases. `prefix` is put before table names if a schema is named.

    `moment` converts a column of milliseconds to a time with a zone, if the database has such a type.
    """

    placeholder: str
    types: Mapping[ColumnType, str]
    greatest: str
    moment: str = ""
    prefix: str = ""


def create_statements(dialect: Dialect) -> list[str]:
    """All tables, indices and views, in an order that works."""
    return [*create_table_statements(dialect), *create_index_statements(dialect)]


def create_table_statements(dialect: Dialect) -> list[str]:
    """All tables and views."""
    return [*(_create_table(table, dialect) for table in TABLES), *_create_views(dialect)]


def create_index_statements(dialect: Dialect) -> list[str]:
    """All indices, except those of the primary keys."""
    indices = [_create_index(table, index, dialect) for table in TABLES for index in table.indices]
    if dialect.moment:
        indices += [_create_time_index(table, dialect) for table in TABLES if table.time]
    return indices


def upsert_statement(table: Table, dialect: Dialect) -> str:
    """Insert a row or merge it into the existing one; parameters in the order of the columns."""
    columns = ", ".join(map(_quoted, table.names))
    values = ", ".join(dialect.placeholder for _ in table.names)
    updates = ", ".join(
        f"{_quoted(name)} = {_merged(table, name, dialect)}"
        for name in table.names
        if name not in table.key and table.merge.get(name) != "first"
    )
    return (
        f"INSERT INTO {dialect.prefix}{table.name} ({columns}) VALUES ({values}) "
        f"ON CONFLICT ({_columns(table.key)}) DO UPDATE SET {updates}"
    )


def insert_statement(table: Table, dialect: Dialect) -> str:
    """Insert a row that is new; parameters in the order of the columns."""
    values = ", ".join(dialect.placeholder for _ in table.names)
    return f"INSERT INTO {dialect.prefix}{table.name} ({_columns(table.names)}) VALUES ({values})"


def move_position_statement(dialect: Dialect) -> str:
    """Move a position on, if it is where the writer expects it.

    Parameters: next_offset, claim, record_id, source, and the next_offset that it must have.
    """
    p = dialect.placeholder
    return (
        f"UPDATE {dialect.prefix}placet_positions SET next_offset = {p}, claim = {p}, record_id = {p} "
        f"WHERE source = {p} AND next_offset = {p}"
    )


def select_statement(table: Table, dialect: Dialect, tail: str = "") -> str:
    """All columns of a table, in order."""
    return f"SELECT {_columns(table.names)} FROM {dialect.prefix}{table.name} {tail}".rstrip()


def keyed_statement(table: Table, dialect: Dialect, count: int) -> str:
    """Rows of a table by `count` primary keys at once; parameters key by key, each in the order of `table.key`."""
    one = f"({', '.join([dialect.placeholder] * len(table.key))})"
    wanted = " AND ".join(f"t.{_quoted(name)} = k.{_quoted(name)}" for name in table.key)
    columns = ", ".join(f"t.{_quoted(name)}" for name in table.names)
    return (
        f"WITH k({_columns(table.key)}) AS (VALUES {', '.join([one] * count)}) "
        # The keys first: SQLite looks up each of them in this order, and would scan the table in the other.
        f"SELECT {columns} FROM k CROSS JOIN {dialect.prefix}{table.name} t WHERE {wanted}"
    )


def _create_table(table: Table, dialect: Dialect) -> str:
    columns = ", ".join(
        f"{_quoted(column.name)} {dialect.types[column.type]}{'' if column.null else ' NOT NULL'}"
        for column in table.columns
    )
    return (
        f"CREATE TABLE IF NOT EXISTS {dialect.prefix}{table.name} "
        f"({columns}, PRIMARY KEY ({_columns(table.key)}))"
    )


def _create_index(table: Table, index: Index, dialect: Dialect) -> str:
    where = f" WHERE {index.where}" if index.where else ""
    return (
        f"CREATE INDEX IF NOT EXISTS {index.name} ON {dialect.prefix}{table.name} "
        f"({_columns(index.columns)}){where}"
    )


def _create_time_index(table: Table, dialect: Dialect) -> str:
    """An index of the time with a zone that analysts see.

    A block range index costs almost nothing, and rows are written in about that order.
    """
    moment = dialect.moment.format(_quoted(table.time))
    name = f"{table.name}_by_moment"
    return f"CREATE INDEX IF NOT EXISTS {name} ON {dialect.prefix}{table.name} USING brin (({moment}))"


# Views on the tables, created with them.
VIEW_NAMES = ("audit", "tools", "policies", "requests", "lost_races", "trust")


def _create_views(dialect: Dialect) -> list[str]:
    p = dialect.prefix
    audit = (
        f"SELECT a.*, c.status AS result, c.output AS result_output, c.error AS result_error, "
        f"c.ended_at_ms AS result_at_ms FROM {p}audit_entries a LEFT JOIN {p}tool_calls c "
        "ON c.tenant = a.tenant AND c.project = a.project AND c.execution_id = a.execution_id "
        f"AND c.call_id = a.call_id AND c.status IN {_ENDED}"
    )
    # Each project numbers the versions of a name separately, and so does the tenant (project `*`).
    newest = (
        f"SELECT MAX(n.version) FROM {p}definitions n "
        "WHERE n.tenant = d.tenant AND n.project = d.project AND n.kind = d.kind AND n.name = d.name"
    )
    # A column that a later version adds comes last: otherwise PostgreSQL would refuse to replace the view of an
    # earlier version, which is opened to find out its version.
    tools = (
        "SELECT tenant, name, version, tool_version, document AS definition, published_by, published_at_ms, project "
        f"FROM {p}definitions d WHERE kind = 'tool' AND version = ({newest})"
    )
    policies = (
        "SELECT tenant, name, version, document, published_by, published_at_ms, project "
        f"FROM {p}definitions WHERE kind = 'policy'"
    )
    requests = (
        "SELECT tenant, project, request_id, hold_id, execution_id, agent, kind, question, options, fields, "
        "decision_type, asks, status, response, decided_by, timed_out, opened_at_ms, deadline_at_ms, closed_at_ms, "
        f"on_timeout FROM {p}holds WHERE request_id IS NOT NULL"
    )
    selects = (audit, tools, policies, requests, _lost_races(p), _trust(p))
    views = dict(zip(VIEW_NAMES, selects, strict=True))
    return [f"{_CREATE_VIEW[bool(p)]} {p}{name} AS {select}" for name, select in views.items()]


def _lost_races(prefix: str) -> str:
    return (
        "SELECT v.tenant, v.project, v.at_ms, v.event_id, v.hold_id, v.execution_id, v.call_id, v.request_id, "
        "v.agent, v.tool, v.subject, v.decision, v.code, v.winning_decision_id, w.subject AS won_by, "
        "w.decision AS won_decision, w.at_ms AS won_at_ms, v.at_ms - w.at_ms AS late_ms "
        f"FROM {prefix}votes v LEFT JOIN {prefix}votes w "
        "ON w.tenant = v.tenant AND w.project = v.project AND w.hold_id = v.hold_id AND w.outcome = 'decided' "
        "AND w.decision_id = v.winning_decision_id WHERE v.outcome = 'lost'"
    )


# Running sums and, for the evidence in the agent's favour, the lower bound of Wilson's score interval at
# z = 1.64485 (95 %, one-sided).
_KINDS = {
    "successes": "success",
    "failures": "failure",
    "unknowns": "unknown",
    "approvals": "approval",
    "edits": "edit",
    "rejections": "rejection",
}


def _trust(prefix: str) -> str:
    sums = ", ".join(
        f"SUM(CASE WHEN kind = '{kind}' THEN 1 ELSE 0 END) OVER w AS {name}" for name, kind in _KINDS.items()
    )
    good, n = "CAST(successes + approvals AS DOUBLE PRECISION)", "evidence"
    # With no good evidence, the rounding of these constants gives slightly less than 0. MAX of two values would
    # work in SQLite, but DuckDB reads the view's text too.
    bound = (
        f"CASE WHEN successes + approvals = 0 THEN 0.0 ELSE ({good} + 1.352765 - 1.64485 * "
        f"SQRT({good} * ({n} - {good}) / {n} + 0.676383)) / ({n} + 2.70553) END AS lower_bound"
    )
    counted = ", ".join(f"'{kind}'" for kind in _KINDS.values())
    return (
        f"SELECT tenant, project, agent, tool, at_ms, event_id, kind, {', '.join(_KINDS)}, evidence, "
        f"{good} / {n} AS share, {bound} FROM (SELECT tenant, project, agent, tool, at_ms, event_id, kind, "
        f"{sums}, COUNT(*) OVER w AS evidence FROM {prefix}evidence WHERE kind IN ({counted}) "
        "WINDOW w AS (PARTITION BY tenant, project, agent, tool ORDER BY at_ms, event_id "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS counted"
    )


# SQLite cannot replace a view, and PostgreSQL has no "create if missing" for views.
_CREATE_VIEW = {False: "CREATE VIEW IF NOT EXISTS", True: "CREATE OR REPLACE VIEW"}


def _merged(table: Table, name: str, dialect: Dialect) -> str:
    merge: Merge | None = table.merge.get(name)
    new, old = f"excluded.{_quoted(name)}", f"{table.name}.{_quoted(name)}"
    match merge:
        case "sum":
            return f"{old} + {new}"
        case "max":
            return f"{dialect.greatest}({old}, {new})"
        case "not_null":
            return f"COALESCE({new}, {old})"
    return new


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(map(_quoted, names))


def _quoted(name: str) -> str:
    return f'"{name}"'
