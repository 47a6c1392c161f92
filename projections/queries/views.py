"""The views for the APIs: a few connections, each query in one snapshot."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeVar

from projections.queries.moment import Moment
from projections.queries.sqlite_moments import SqliteMoments
from projections.store.port import Position, ViewUnavailable
from projections.store.urls import is_sqlite, sqlite_path
from schemas.topics import Topics

T = TypeVar("T")
CONNECTIONS = 4
# A reader gets an answer within this time, whatever the database does.
ANSWER_S = 10.0


class Positions(NamedTuple):
    """How far a snapshot has read: partition → first offset not read, and the same for the definitions."""

    executions: dict[int, int]
    definitions: int


class Source(Protocol):
    """The source of snapshots: `SqliteMoments` or `PostgresMoments`."""

    def moment(self) -> AbstractContextManager[Moment]:
        """A snapshot; it ends with the context."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class Views:
    """Reads of the views, from any task or thread; at most `connections` at a time."""

    def __init__(self, source: Source, topics: Topics, connections: int = CONNECTIONS) -> None:
        self._source = source
        self._topics = topics
        # Threads of its own: a database that does not answer must not block other work that runs in threads.
        self._is_closed = False
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="views")

    async def read(self, ask: Callable[[Moment], T], within_s: float = ANSWER_S) -> tuple[T, Positions]:
        """Query the views in one snapshot, outside the event loop's thread.

        Args:
            ask: one or more of the queries of this package, as a plain function of the snapshot.
            within_s: how long to wait for the answer.

        Returns:
            The answer, and the positions of the same snapshot.

        Raises:
            ViewUnavailable: there is no view yet, or its database does not answer in time.
            ViewOutdated: another version of Placet built it.
        """
        if self._is_closed:
            raise ViewUnavailable("The views are closed: this process is ending.")
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, self.read_now, ask)
        except TimeoutError as error:
            raise ViewUnavailable(
                f"The views' database has not answered for {within_s:.0f} s: try again in a moment."
            ) from error

    def read_now(self, ask: Callable[[Moment], T]) -> tuple[T, Positions]:
        """As `read`, in the calling thread."""
        with self._source.moment() as moment:
            return ask(moment), self._positions(moment.positions())

    def close(self) -> None:
        """Close the connections, also those that wait for an answer. Can be called again."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._source.close()

    def _positions(self, found: list[Position]) -> Positions:
        offsets = {at.partition: at.next_offset for at in found if at.topic == self._topics.executions}
        defined = (at.next_offset for at in found if at.topic == self._topics.definitions)
        return Positions(offsets, next(defined, 0))


def open_views(url: str, topics: Topics | None = None, connections: int = CONNECTIONS) -> Views:
    """The views of a database URL. Connects at the first query.

    Args:
        url: as for the projector.
        topics: the topics of the installation; by default those with the prefix `placet`.
        connections: how many reads can be under way at once.

    Raises:
        UnknownDatabase: the URL is neither SQLite nor PostgreSQL.
    """
    if is_sqlite(url):
        return Views(SqliteMoments(sqlite_path(url)), topics or Topics(), connections)
    # The driver is loaded only if the views are in PostgreSQL.
    from projections.queries.postgres_moments import PostgresMoments
    from projections.store.facade import data_schema
    from projections.store.postgres_address import split_url

    plain, schema = split_url(url)
    source = PostgresMoments(plain, data_schema(schema), connections)
    return Views(source, topics or Topics(), connections)
