"""SQL text made from the tables, for both dialects. Column names are quoted: some are SQL keywords."""

# Every name that is put into the text comes from `tables`; values are always parameters.
# ruff: noqa: S608

from collections.abc import Mapping
from dataclasses import dataclass

from projections.store.sql_views import SQL_VIEWS
from projections.store.tables import TABLES
from projections.tables.columns import ColumnType, Index, Merge, Table


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


def _create_views(dialect: Dialect) -> list[str]:
    p = dialect.prefix
    return [f"{_CREATE_VIEW[bool(p)]} {p}{name} AS {select(p)}" for name, select in SQL_VIEWS.items()]


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
