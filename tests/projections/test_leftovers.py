"""What a rebuild makes is its owner's alone, and what a killed one leaves is removed by the next."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from projections.store.leftovers import UNLOCKED_FOR_S
from projections.store.postgres_address import split_url
from projections.store.urls import (
    identity_of,
    is_sqlite,
    new_generation,
    open_view,
    remove_leftovers,
    sqlite_path,
)

BUILDER = """
import sys, time
from projections.store.urls import new_generation
made = new_generation(sys.argv[1])
print("made", flush=True)
time.sleep(600)
"""


@contextmanager
def a_rebuild(url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that builds a generation and never gets done."""
    command = (sys.executable, "-c", BUILDER, url)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as builder:
        try:
            assert builder.stdout is not None
            assert builder.stdout.readline() == "made\n"
            yield builder
        finally:
            builder.kill()


def generations(url: str) -> set[str]:
    """Everything that is there of a view: files, or schemas."""
    if is_sqlite(url):
        path = sqlite_path(url)
        return {name for name in os.listdir(path.parent) if name.startswith(path.name)}
    plain, schema = split_url(url)
    with psycopg.connect(plain) as connection:
        like = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (schema,)
        )
        return {name for (name,) in like.fetchall()}


def until(removed: Callable[[], list[str]]) -> list[str]:
    """What was removed, once the database has noticed that the builder is dead."""
    ends_at = time.monotonic() + 20
    while not (found := removed()):
        assert time.monotonic() < ends_at
        time.sleep(0.05)
    return found


@pytest.fixture
def _everybody_may_read() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_what_a_killed_rebuild_left_is_removed_and_what_a_running_one_makes_is_not(database_url: str) -> None:
    open_view(database_url).close()
    live, identity = generations(database_url), identity_of(database_url)
    with a_rebuild(database_url) as builder:
        building = generations(database_url)
        assert building > live
        assert remove_leftovers(database_url) == []
        assert generations(database_url) == building
        builder.kill()
        builder.wait()
        assert len(until(lambda: remove_leftovers(database_url))) == 1
    assert generations(database_url) == live
    assert identity_of(database_url) == identity
    open_view(database_url).close()


def test_a_rebuilt_view_that_was_swapped_in_is_no_leftover(database_url: str) -> None:
    known = identity_of(database_url)
    rebuilt = new_generation(database_url)
    rebuilt.store.close()
    rebuilt.swap(known, False)
    there = generations(database_url)
    assert remove_leftovers(database_url) == []
    assert generations(database_url) == there
    assert not any(name.endswith(".building") for name in there)
    discarded = new_generation(database_url)
    discarded.store.close()
    discarded.discard()
    assert generations(database_url) == there


def test_a_rebuild_killed_between_its_swap_and_its_end_leaves_the_live_view(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/views.db"
    open_view(url).close()
    live = sqlite_path(url).resolve()
    claim = live.with_name(f"{live.name}.building")
    claim.touch()
    assert remove_leftovers(url) == []
    assert live.exists()
    assert not claim.exists()


def test_a_generation_without_a_claim_is_removed_once_nobody_writes_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/views.db"
    open_view(url).close()
    live = generations(url)
    left = tmp_path / "views.db.0123456789ab"
    other = tmp_path / "views.db.backup"
    for file in (left, left.with_name(f"{left.name}-wal"), other):
        file.write_bytes(b"x")
    assert remove_leftovers(url) == []
    old = time.time() - UNLOCKED_FOR_S - 1
    for file in (left, left.with_name(f"{left.name}-wal"), other):
        os.utime(file, (old, old))
    assert remove_leftovers(url) == [left.name]
    assert generations(url) == live | {other.name}


@pytest.mark.usefixtures("_everybody_may_read")
def test_views_outside_the_data_directory_are_their_owners_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/disk/views.db"
    known = identity_of(url)
    rebuilt = new_generation(url)
    rebuilt.store.close()
    rebuilt.swap(known, False)
    live = sqlite_path(url).resolve()
    live.chmod(0o644)
    store = open_view(url)
    store.positions()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in live.parent.iterdir()}
    store.close()
    assert set(modes.values()) == {0o600}
    assert live.parent.stat().st_mode & 0o077 == 0
