"""The PostgreSQL schema that analysts read: SQL views that stay when the tables behind them are swapped.

The tables are in `placet_data`, with one SQL view per table in `placet`. Roles that can read the schema `placet` read
these views, and can build views of their own on them: a swap redefines the same views on the rebuilt tables, so that
neither grants nor dependent views are lost. Columns that a new version adds come last. Times and JSON are offered in
PostgreSQL's own types too (`offered`), and every view and column has a comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from projections.store.offered import Offered, columns, comment_on, comments, offered
from projections.store.sql_views import VIEW_NAMES
from projections.store.tables import TABLES

Connection = psycopg.Connection[tuple[Any, ...]]
TRACKING, LAYOUT = "tracking", "placet_layout"
# An analyst's query that runs longer than this prevents a swap, but never keeps the projector from writing.
LOCK_TIMEOUT = "10s"

_SHOWN = (*(table.name for table in TABLES), *VIEW_NAMES)
_OWN = (*_SHOWN, TRACKING, LAYOUT)
# Other users' views on a schema's tables, and their foreign keys to them.
_DEPENDENTS = """
SELECT DISTINCT format('%%I.%%I', n.nspname, c.relname)
FROM pg_depend d
JOIN pg_rewrite r ON r.oid = d.objid
JOIN pg_class c ON c.oid = r.ev_class
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = d.refobjid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND c.oid <> t.oid
  AND tn.nspname = %(schema)s AND t.relname = ANY(%(names)s)
  AND NOT (n.nspname IN (%(schema)s, %(other)s) AND c.relname = ANY(%(own)s))
UNION
SELECT format('%%I.%%I', n.nspname, c.relname)
FROM pg_constraint f
JOIN pg_class c ON c.oid = f.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = f.confrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
WHERE f.contype = 'f' AND tn.nspname = %(schema)s AND n.nspname <> %(schema)s AND t.relname = ANY(%(names)s)
ORDER BY 1
"""
_GUESTS = """
SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relname = ANY(%s) ORDER BY 1
"""
_GRANTEES = """
SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee)::text END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(names)s) AND a.grantee <> c.relowner ORDER BY 1
"""
_USERS = """
SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
FROM pg_namespace n, aclexplode(n.nspacl) a
WHERE n.nspname = %s AND a.privilege_type = 'USAGE' AND a.grantee <> n.nspowner
"""
_READERS = """
SELECT c.relname, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
WHERE n.nspname = %s AND c.relname = ANY(%s) AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
"""


def data_schema(schema: str) -> str:
    """The schema of the tables behind the views in a schema."""
    return f"{schema}_data"


def move_old_tables(connection: Connection, schema: str) -> None:
    """Move tables that an earlier version kept in the schema itself, together with the right to read them.

    Args:
        connection: with a transaction and the view's lock.
        schema: the schema that analysts read.
    """
    if not _is_table(connection, schema, LAYOUT) or _exists(connection, data_schema(schema)):
        return
    users = [user for (user,) in connection.execute(_USERS, (schema,))]
    readers = connection.execute(_READERS, (schema, list(_SHOWN))).fetchall()
    names = Identifier(schema), Identifier(data_schema(schema))
    connection.execute(SQL("ALTER SCHEMA {} RENAME TO {}").format(*names))
    connection.execute(SQL("CREATE SCHEMA {}").format(names[0]))
    for user in users:
        connection.execute(SQL("GRANT USAGE ON SCHEMA {} TO {}").format(names[0], _role(user)))
    if readers:
        refresh(connection, schema)
        for name, reader in readers:
            view = Identifier(schema, name)
            connection.execute(SQL("GRANT SELECT ON {} TO {}").format(view, _role(reader)))


def is_current(connection: Connection, schema: str) -> bool:
    """Returns True if every table has its view with all columns and comments."""
    behind, said = data_schema(schema), comments(connection, schema)
    for name in _SHOWN:
        there = offered(connection, behind, name)
        if {one.declared for one in there} != set(columns(connection, schema, name)):
            return False
        if any(one.comment and said.get((name, one.name)) != one.comment for one in there):
            return False
    return True


def refresh(connection: Connection, schema: str) -> None:
    """Redefine the views on the tables that are behind them now.

    Args:
        connection: with a transaction and the view's lock.
        schema: the schema that analysts read; created if it is missing.
    """
    connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)))
    for name in _SHOWN:
        # A view of an earlier version does not have every table.
        if there := offered(connection, data_schema(schema), name):
            _show(connection, schema, name, there)


def _show(connection: Connection, schema: str, name: str, there: Sequence[Offered]) -> None:
    view, source = Identifier(schema, name), Identifier(data_schema(schema), name)
    shown = columns(connection, schema, name)
    if shown and not _fits(shown, there):
        connection.execute(SQL("DROP VIEW {} CASCADE").format(view))
        shown = []
    by_name = {one.name: one for one in there}
    names = dict.fromkeys([*(column for column, _ in shown), *by_name])
    made = SQL(", ").join(
        SQL("{} AS {}").format(by_name[column].expression, Identifier(column)) for column in names
    )
    connection.execute(SQL("CREATE OR REPLACE VIEW {} AS SELECT {} FROM {}").format(view, made, source))
    comment_on(connection, schema, name, there)


def losses(connection: Connection, schema: str, rebuilt: str) -> list[str]:
    """What other users would lose if the tables of a rebuilt view replaced the current ones.

    Args:
        connection: to the database.
        schema: the schema that analysts read.
        rebuilt: the schema with the rebuilt tables.

    Returns:
        One sentence for each, saying what to do; empty if nothing would be lost.
    """
    behind = data_schema(schema)
    everything = {"schema": behind, "names": list(_OWN), "other": schema, "own": list(_OWN)}
    found = [
        f"{name} depends on tables of {behind}: change it to read {schema}"
        for (name,) in connection.execute(_DEPENDENTS, everything)
    ]
    found += [
        f"{name} is in {behind}, which Placet creates again: move it to another schema"
        for (name,) in connection.execute(_GUESTS, (behind, list(_OWN)))
    ]
    found += [
        f"{role} has rights on tables of {behind}: grant them on {schema} instead, and revoke these"
        for (role,) in connection.execute(_GRANTEES, everything)
    ]
    return [*found, *_of_changed_views(connection, schema, rebuilt)]


def _of_changed_views(connection: Connection, schema: str, rebuilt: str) -> list[str]:
    """What depends on views that the new version must drop and create: a column is gone, or has another type."""
    found = []
    for name in _SHOWN:
        shown = columns(connection, schema, name)
        if not shown or _fits(shown, offered(connection, rebuilt, name)):
            continue
        one = {"schema": schema, "names": [name], "other": schema, "own": [name]}
        changed = f"{schema}.{name}, in which columns were removed or have another type"
        found += [
            f"{dependent} depends on {changed}" for (dependent,) in connection.execute(_DEPENDENTS, one)
        ]
        found += [f"{role} has rights on {changed}" for (role,) in connection.execute(_GRANTEES, one)]
    return found


def _fits(shown: Sequence[tuple[str, str]], there: Sequence[Offered]) -> bool:
    return set(shown) <= {one.declared for one in there}


def _is_table(connection: Connection, schema: str, name: str) -> bool:
    statement = "SELECT relkind = 'r' FROM pg_class WHERE oid = to_regclass(%s)"
    row = connection.execute(statement, (f'"{schema}"."{name}"',)).fetchone()
    return row is not None and bool(row[0])


def _exists(connection: Connection, schema: str) -> bool:
    row = connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", (f'"{schema}"',)).fetchone()
    return row is not None and bool(row[0])


def _role(quoted: str) -> Composed:
    """A role as `quote_ident` wrote it, or PUBLIC."""
    return Composed([SQL(quoted)])
