"""The store that a `database_url` names, and how a rebuilt view replaces a live one.

PostgreSQL's driver is loaded only for PostgreSQL URLs.
"""

from pathlib import Path

from projections.store import leftovers, sqlite
from projections.store.generation import Generation, Identity, made
from projections.store.port import SETTING, ViewError, ViewStore

SQLITE = "sqlite:///"
NOTHING = sqlite.NOTHING
POSTGRES = ("postgresql://", "postgres://")


class UnknownDatabase(ViewError):
    """The URL names no database that can hold views."""


def open_view(url: str) -> ViewStore:
    """The live view of a database URL, created empty if there is none.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db`, or `postgresql://…`; `schema=` in its query
            names the PostgreSQL schema that analysts read, by default `placet`.

    Raises:
        UnknownDatabase: the URL is of another kind.
        ViewUnavailable: the database does not answer.
        DatabaseUnfit: the PostgreSQL database is not of the encoding UTF8.
        ViewOutdated: another version of Placet built the view.
    """
    if is_sqlite(url):
        return sqlite.open_current(sqlite_path(url))
    from projections.store import postgres_urls

    return postgres_urls.open_view(url)


def check_sound(url: str) -> None:
    """Read the whole of a SQLite view, if there is one; a PostgreSQL server checks its own storage.

    Raises:
        ViewDamaged: it is damaged.
        ViewUnavailable: it cannot be read.
    """
    if is_sqlite(url):
        sqlite.check_sound(sqlite_path(url))


def new_generation(url: str) -> Generation:
    """An empty view beside the live one of a URL, claimed until it is swapped in or discarded."""
    if is_sqlite(url):
        return _new_file(sqlite_path(url))
    from projections.store import postgres_urls

    return postgres_urls.new_generation(url)


def _new_file(path: Path) -> Generation:
    file = sqlite.new_generation(path)
    claim = sqlite.claim(file)

    def swap(replaced: Identity, force: bool) -> None:
        sqlite.replace_with(file, path, replaced)
        claim.drop()

    def discard() -> None:
        leftovers.remove_generation(file)
        claim.drop()

    store = made(lambda: sqlite.SqliteViewStore(file, file, fast=True), discard)
    return Generation(store, lambda: None, swap, discard)


def remove_leftovers(url: str) -> list[str]:
    """Remove the leftovers of killed rebuilds beside the view of a URL; a rebuild that still runs is left alone.

    Returns:
        The names of what was removed.

    Raises:
        ViewUnavailable: the database does not answer.
    """
    if is_sqlite(url):
        return leftovers.remove_leftovers(sqlite_path(url))
    from projections.store import postgres_urls

    return postgres_urls.remove_leftovers(url)


def identity_of(url: str) -> Identity:
    """The identity of the view's generation that a URL points to now; `NOTHING` if there is none."""
    if is_sqlite(url):
        return sqlite.identity(sqlite_path(url))
    from projections.store import postgres_urls

    return postgres_urls.identity_of(url)


def exists(url: str) -> bool:
    """Returns True if there is a live view at the URL."""
    return identity_of(url) != NOTHING


def is_sqlite(url: str, setting: str = SETTING) -> bool:
    """Returns True if the URL names a SQLite file.

    Args:
        url: of a database.
        setting: the name of its setting, for the error.

    Raises:
        UnknownDatabase: it names neither SQLite nor PostgreSQL.
    """
    if url.startswith(SQLITE):
        return True
    if url.startswith(POSTGRES):
        return False
    # Before `://` there is no password; a text without `://` can be one.
    scheme, is_url, _ = url.partition("://")
    kind = f", not {scheme[:40]}://…" if is_url else ""
    raise UnknownDatabase(
        f"{setting} names no database for views: give sqlite:///PATH or "
        f"postgresql://USER:PASSWORD@HOST:PORT/NAME{kind}."
    )


def check_url(url: str, setting: str) -> None:
    """Refuse a URL that names no database, without connecting to any.

    Args:
        url: as it was given.
        setting: the name of its setting, for the error.

    Raises:
        UnknownDatabase: it names no database.
        DatabaseUnfit: PostgreSQL cannot read it.
    """
    if not is_sqlite(url, setting):
        from projections.store import postgres_address

        postgres_address.check_url(url, setting)
    elif not sqlite_path(url).name:
        raise UnknownDatabase(f"{setting} names no file: give sqlite:///PATH.")


def sqlite_path(url: str) -> Path:
    """The configured path of a SQLite URL."""
    return Path(url.removeprefix(SQLITE))
