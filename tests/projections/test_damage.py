"""A SQLite view whose file is damaged: told as such by whoever meets it, and never served on."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from contextlib import closing
from pathlib import Path

import pytest

from projections.compare import compare
from projections.queries.views import open_views
from projections.store import sqlite_damage
from projections.store.port import ViewDamaged, ViewError
from projections.store.sqlite import swap_in
from projections.store.sqlite_damage import check_ahead
from projections.store.urls import check_sound, open_view, sqlite_path
from projections.tables.executions import EXECUTIONS
from tests.projections.damaged import spoil
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder, many_runs

SEEDS = range(12)
FLIPS = 200


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A view in SQLite with some hundred rows, and nothing in its write-ahead log."""
    made = f"sqlite:///{tmp_path / 'views.db'}"
    with closing(open_view(made)) as store:
        Filler(store).fill(many_runs(LogBuilder(3).claim_all(), 60, seed=3))
    return made


def file_of(url: str) -> Path:
    return sqlite_path(url).resolve()


def flip(file: Path, seed: int) -> None:
    """Flip bits of bytes at random."""
    bytes_, chance = bytearray(file.read_bytes()), random.Random(seed)
    for _ in range(FLIPS):
        bytes_[chance.randrange(len(bytes_))] ^= 0x41
    file.write_bytes(bytes_)


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_view_is_found_before_it_is_served(url: str, seed: int) -> None:
    check_sound(url)
    flip(file_of(url), seed)
    with pytest.raises(ViewDamaged, match=r"views\.db is damaged .*: rebuild it .* placet replay --force"):
        check_sound(url)


def test_half_of_a_view_is_found_before_it_is_served(url: str) -> None:
    os.truncate(file_of(url), file_of(url).stat().st_size // 2)
    with pytest.raises(ViewDamaged, match="placet replay --force"):
        check_sound(url)


def test_sound_view_and_none_at_all_are_found_sound(url: str, tmp_path: Path) -> None:
    check_sound(url)
    check_sound(f"sqlite:///{tmp_path / 'none.db'}")
    check_sound("postgresql://127.0.0.1:1/none")


@pytest.mark.parametrize("seed", SEEDS)
def test_reading_all_of_a_damaged_view_ends_in_no_other_error(url: str, seed: int, tmp_path: Path) -> None:
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    (tmp_path / "copy.db").write_bytes(file_of(url).read_bytes())
    flip(file_of(url), seed)
    with closing(open_view(copy)) as sound, sound.snapshot() as rebuilt:
        try:
            with closing(open_view(url)) as live, live.snapshot() as moment:
                live.positions()
                assert not compare(rebuilt, moment).is_equal
        except ViewError:
            # Told with a sentence of its own; any other error fails this test.
            pass


async def test_gateway_that_met_damage_reads_nothing_more_of_that_view(url: str, tmp_path: Path) -> None:
    spoil(file_of(url), EXECUTIONS.name)
    views = open_views(url)
    try:
        await views.read(lambda moment: moment.positions())
        with pytest.raises(ViewDamaged) as met:
            await views.read(lambda moment: moment.select(EXECUTIONS, ""))
        with pytest.raises(ViewDamaged, match="placet replay --force") as again:
            await views.read(lambda moment: moment.positions())
        assert str(again.value) == str(met.value)
        made_anew = tmp_path / "views.db.0123456789ab"
        open_view(f"sqlite:///{made_anew}").close()
        swap_in(made_anew.resolve(), sqlite_path(url))
        assert await views.read(lambda moment: moment.select(EXECUTIONS, ""))
    finally:
        views.close()


async def test_look_that_takes_long_is_waited_for_beside_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_damage, "AHEAD_S", 0.0)
    go_on = threading.Event()

    def look() -> None:
        go_on.wait(10)
        raise ViewDamaged("it is")

    found = await check_ahead(look)
    assert not found.done()
    go_on.set()
    with pytest.raises(ViewDamaged, match="it is"):
        await asyncio.wait_for(found, 10)
