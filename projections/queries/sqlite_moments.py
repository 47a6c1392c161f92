"""Moments of a SQLite view."""

import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from projections.queries.moment import Moment
from projections.store.layout import check_layout
from projections.store.port import ViewDamaged, ViewUnavailable
from projections.store.sqlite import DIALECT, connect, identity
from projections.store.sqlite_damage import unavailable
from vitals.damage import is_damage


@dataclass(frozen=True, slots=True)
class _Opened:
    """A connection and the generation that it reads."""

    connection: sqlite3.Connection
    generation: tuple[int, int]


class SqliteMoments:
    """Connections to the generation that the path points to now; idle ones are kept for the next query.

    A generation that was once found damaged is never read again: other parts of it may read well, with rows missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[_Opened] = []
        self._lock = threading.Lock()
        self._damaged: tuple[tuple[int, int], str] | None = None

    @contextmanager
    def moment(self) -> Iterator[Moment]:
        """See `Source`."""
        opened = self._take()
        try:
            with _transaction(opened.connection):
                yield _moment(opened.connection)
        except sqlite3.Error as error:
            opened.connection.close()
            raise self._failure(opened.generation, "could not be read", error) from error
        except BaseException:
            opened.connection.close()
            raise
        with self._lock:
            self._idle.append(opened)

    def close(self) -> None:
        """See `Source`."""
        with self._lock:
            idle, self._idle = self._idle, []
        for opened in idle:
            opened.connection.close()

    def _take(self) -> _Opened:
        generation = identity(self._path)
        if self._damaged is not None and self._damaged[0] == generation:
            raise ViewDamaged(self._damaged[1])
        while True:
            with self._lock:
                opened = self._idle.pop() if self._idle else None
            if opened is None:
                return self._open(generation)
            if opened.generation == generation:
                return opened
            opened.connection.close()

    def _open(self, generation: tuple[int, int]) -> _Opened:
        connection = connect(self._path)
        try:
            stored = connection.execute("SELECT layout FROM placet_layout").fetchone()
        except sqlite3.Error as error:
            connection.close()
            if is_damage(error):
                raise self._failure(generation, "", error) from error
            raise ViewUnavailable(f"There is no view at {self._path} yet: start the projector.") from error
        if stored is None:
            connection.close()
            raise ViewUnavailable(f"The view at {self._path} is being created: try again in a moment.")
        check_layout(stored[0], DIALECT, str(self._path))
        return _Opened(connection, generation)

    def _failure(self, generation: tuple[int, int], what: str, error: sqlite3.Error) -> ViewUnavailable:
        failure = unavailable(self._path, what, error)
        if isinstance(failure, ViewDamaged):
            self._damaged = generation, str(failure)
        return failure


def _moment(connection: sqlite3.Connection) -> Moment:
    def stream(text: str, values: Sequence[Any]) -> Generator[Sequence[Any], None, None]:
        # A cursor of SQLite reads a row when it is asked for it.
        with closing(connection.execute(text, values)) as cursor:
            yield from cursor

    return Moment(DIALECT, lambda text, values: connection.execute(text, values).fetchall(), stream)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    yield
    connection.execute("COMMIT")
