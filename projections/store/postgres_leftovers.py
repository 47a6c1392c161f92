"""Leftovers of a killed rebuild beside a PostgreSQL view, and how they are told from a rebuild that still runs.

The schema of a generation that is being built has a comment, and a connection that lives as long as the rebuild
holds an advisory lock of its name. A schema that has the comment but whose lock is free is abandoned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from projections.store.bounded import BoundedConnection
from projections.store.port import ViewUnavailable

logger = logging.getLogger(__name__)

MADE_BY = "made by placet replay"
_KEY = "building {}"
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_LEFT = """
SELECT nspname FROM pg_namespace
WHERE nspname ~ ('^' || %s || '_[0-9a-f]{12}$') AND obj_description(oid, 'pg_namespace') = %s ORDER BY 1
"""
# The removal of a leftover waits this long for readers of its tables, and then leaves it.
_WAIT = "SET lock_timeout = '5s'"


# Opens a connection whose statements commit by themselves (`postgres.connect`).
Connect = Callable[[str], BoundedConnection[tuple[Any, ...]]]


class Claim:
    """Marks a generation as being built, until it is dropped."""

    def __init__(self, connect: Connect, url: str, schema: str) -> None:
        """Take the claim, and create the schema.

        Raises:
            ViewUnavailable: the database does not answer, or refuses.
        """
        self._connection = connect(url)
        try:
            with self._connection.transaction():
                self._connection.execute(_LOCK, (_KEY.format(schema),))
                self._connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
                self._connection.execute(
                    SQL("COMMENT ON SCHEMA {} IS {}").format(Identifier(schema), Literal(MADE_BY))
                )
        except psycopg.Error as error:
            self._connection.close()
            raise ViewUnavailable(f"The view {schema} cannot be created: {error}") from error

    def drop(self) -> None:
        """Release the claim: the generation is now the live one, or it is gone."""
        self._connection.close()


def remove_leftovers(connect: Connect, url: str, schema: str) -> list[str]:
    """Drop the generations of a view's schema that no process is building.

    Args:
        connect: opens a connection.
        url: of the database.
        schema: of the live tables.

    Returns:
        The schemas that were dropped. A schema that cannot be dropped is logged and left.

    Raises:
        ViewUnavailable: the database does not answer.
    """
    removed = []
    with connect(url) as connection:
        connection.execute(_WAIT)
        for (left,) in connection.execute(_LEFT, (schema, MADE_BY)).fetchall():
            try:
                if connection.execute(_LOCK, (_KEY.format(left),)).fetchall()[0][0]:
                    connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(left)))
                    removed.append(str(left))
            except psycopg.Error as error:
                logger.warning(
                    "%s was left behind by a killed rebuild and cannot be dropped: %s",
                    left,
                    str(error).strip(),
                )
    if removed:
        logger.info("dropped what killed rebuilds had left behind: %s", ", ".join(removed))
    return removed
