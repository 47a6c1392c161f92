"""Which store a `database_url` means, and how a rebuilt view takes the place of a live one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from projections.store import postgres, sqlite
from projections.store.port import ViewError, ViewStore

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


class UnknownDatabase(ViewError):
    """The URL names no database that views can be kept in."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A new view beside the live one. `swap` puts it in its place, `discard` removes it."""

    store: ViewStore
    swap: Callable[[], None]
    discard: Callable[[], None]


def open_view(url: str) -> ViewStore:
    """The live view of a database URL, made empty where there is none.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db`, or `postgresql://…`; with `schema=` in its
            query the PostgreSQL schema is another than `placet`.

    Raises:
        UnknownDatabase: the URL is of another kind.
        ViewUnavailable: the database does not answer.
        ViewOutdated: another version of Placet built the view.
    """
    if is_sqlite(url):
        return sqlite.open_current(sqlite_path(url))
    plain, schema = postgres.split_url(url)
    return postgres.PostgresViewStore(plain, schema)


def new_generation(url: str) -> Generation:
    """An empty view beside the live one of a URL."""
    if is_sqlite(url):
        path = sqlite_path(url)
        file = sqlite.new_generation(path)
        store = sqlite.SqliteViewStore(file, file)
        return Generation(store, lambda: sqlite.replace_with(file, path), lambda: sqlite.remove(file))
    plain, schema = postgres.split_url(url)
    fresh = postgres.new_generation(schema)
    return Generation(
        postgres.PostgresViewStore(plain, fresh),
        lambda: postgres.swap_in(plain, fresh, schema),
        lambda: postgres.drop(plain, fresh),
    )


def exists(url: str) -> bool:
    """Whether there is a live view at the URL."""
    if is_sqlite(url):
        return sqlite_path(url).exists()
    return postgres.schema_exists(*postgres.split_url(url))


def is_sqlite(url: str) -> bool:
    """Whether the URL means a SQLite file.

    Raises:
        UnknownDatabase: it means neither SQLite nor PostgreSQL.
    """
    if url.startswith(SQLITE):
        return True
    if url.startswith(POSTGRES):
        return False
    kind = url.partition(":")[0][:40]
    raise UnknownDatabase(
        f"Views are kept in sqlite:///… or postgresql://…, not in {kind}: mend DATABASE_URL."
    )


def sqlite_path(url: str) -> Path:
    """The configured path of a SQLite URL."""
    return Path(url.removeprefix(SQLITE))
