"""Views that another version of Placet built: rebuilt from the log when a stack is started by this one."""

from __future__ import annotations

import subprocess
import sys

from ops import process
from ops.config import DataDir
from ops.errors import DatabaseUnreachableError, UsageError
from projections.store.port import ViewError, ViewOutdated, ViewUnavailable
from projections.store.urls import check_url, exists, open_view

DATABASE_URL = "--database-url (DATABASE_URL)"


def are_outdated(database_url: str) -> bool:
    """Whether another version built the views; False also where nobody can tell, since the projector tells why."""
    try:
        if exists(database_url):
            open_view(database_url).close()
    except ViewOutdated:
        return True
    except ViewError:
        return False
    return False


def check_database(database_url: str | None) -> None:
    """Refuse a database for the views that does not answer, before anything is started that would wait for it.

    Raises:
        DatabaseUnreachableError: It does not answer.
        UsageError: It is none in which views can be kept.
    """
    if database_url is None:
        return
    check_url_given(database_url, DATABASE_URL)
    try:
        exists(database_url)
    except ViewUnavailable as error:
        raise DatabaseUnreachableError(str(error)) from error
    except ViewError as error:
        raise UsageError(str(error)) from error


def check_url_given(url: str | None, setting: str) -> None:
    """Refuse a URL of a database that was given and names none, by the option that it was given with.

    Raises:
        UsageError: It names none.
    """
    if url is None:
        return
    try:
        check_url(url, setting)
    except ViewError as error:
        raise UsageError(str(error)) from error


def start_view_rebuild(directory: DataDir, bootstrap_servers: str) -> subprocess.Popen[bytes]:
    """Start `placet replay` for the stack in a directory; what it prints goes where this process prints."""
    where = ("--data-dir", str(directory.root), "--bootstrap-servers", bootstrap_servers)
    command = (sys.executable, "-m", "ops.replay", *where)
    return process.spawn(command, cwd=process.PACKAGE_ROOT)
