"""Which store a `database_url` means, and how a rebuilt view takes the place of a live one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from projections.store import facade, postgres, sqlite
from projections.store.port import ViewError, ViewStore

SQLITE = "sqlite:///"
NOTHING = (-1, -1)
POSTGRES = ("postgresql://", "postgres://")


class UnknownDatabase(ViewError):
    """The URL names no database that views can be kept in."""


Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Generation:
    """A new view beside the live one.

    `check` raises `ViewHeld` where the swap would lose what others have made. `swap` puts it in the place of the view
    with the given identity, or raises `ViewReplaced` or, unless it is forced, `ViewHeld`; close the store before.
    `discard` removes it.
    """

    store: ViewStore
    check: Callable[[], None]
    swap: Callable[[Identity, bool], None]
    discard: Callable[[], None]


def open_view(url: str) -> ViewStore:
    """The live view of a database URL, made empty where there is none.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db`, or `postgresql://…`; with `schema=` in its
            query the PostgreSQL schema that analysts read is another than `placet`.

    Raises:
        UnknownDatabase: the URL is of another kind.
        ViewUnavailable: the database does not answer.
        DatabaseUnfit: the PostgreSQL database is not of the encoding UTF8.
        ViewOutdated: another version of Placet built the view.
    """
    if is_sqlite(url):
        return sqlite.open_current(sqlite_path(url))
    plain, schema = postgres.split_url(url)
    return postgres.PostgresViewStore(plain, facade.data_schema(schema), shown_as=schema)


def new_generation(url: str) -> Generation:
    """An empty view beside the live one of a URL."""
    if is_sqlite(url):
        path = sqlite_path(url)
        file = sqlite.new_generation(path)
        return Generation(
            sqlite.SqliteViewStore(file, file, fast=True),
            lambda: None,
            lambda replaced, force: sqlite.replace_with(file, path, replaced),
            lambda: sqlite.remove(file),
        )
    plain, schema = postgres.split_url(url)
    fresh = postgres.new_generation(facade.data_schema(schema))
    return Generation(
        postgres.PostgresViewStore(plain, fresh),
        lambda: postgres.check_losses(plain, schema, fresh),
        lambda replaced, force: postgres.swap_in(plain, fresh, schema, replaced[0], force=force),
        lambda: postgres.drop(plain, fresh),
    )


def identity_of(url: str) -> Identity:
    """Which generation of a view a URL means now; `NOTHING` where there is none."""
    if is_sqlite(url):
        return sqlite.identity(sqlite_path(url))
    plain, schema = postgres.split_url(url)
    return postgres.schema_identity(plain, facade.data_schema(schema)), -1


def exists(url: str) -> bool:
    """Whether there is a live view at the URL."""
    return identity_of(url) != NOTHING


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
