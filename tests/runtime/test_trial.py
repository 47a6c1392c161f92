"""A command is tried in a child: whatever ends that child ends nobody else."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from services.runtime.trial import ForkedTrial


def fails() -> None:
    raise ValueError("this is what it was tried for")


def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def takes_all_memory() -> None:
    held = bytearray(8 << 30)
    held[0] = 1


@pytest.mark.parametrize("ending", [fails, is_killed, takes_all_memory, lambda: os._exit(3)])
async def test_case_25_what_ends_its_child_has_not_survived(ending: Callable[[], None]) -> None:
    assert not await ForkedTrial().survives(ending)


async def test_what_is_tried_changes_nothing_here(tmp_path: Path) -> None:
    changed = list[int]()

    def changes() -> None:
        changed.append(os.getpid())
        (tmp_path / "who").write_text(str(os.getpid()))

    assert await ForkedTrial().survives(changes)
    assert changed == []
    assert (tmp_path / "who").read_text() != str(os.getpid())


async def test_child_that_hangs_is_ended_in_time() -> None:
    begun = time.monotonic()

    assert not await ForkedTrial(limit_s=0.2).survives(lambda: time.sleep(60))
    assert time.monotonic() - begun < 30


async def test_others_go_on_while_a_child_tries() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.005)

    counting = asyncio.create_task(count())
    assert await ForkedTrial().survives(lambda: time.sleep(0.3))
    counting.cancel()
    assert turns > 5


async def test_child_is_ended_with_who_waits_for_it(tmp_path: Path) -> None:
    named = tmp_path / "pid"

    def hangs() -> None:
        (tmp_path / "new").write_text(str(os.getpid()))
        (tmp_path / "new").replace(named)
        time.sleep(60)

    waiting = asyncio.create_task(ForkedTrial().survives(hangs))
    async with asyncio.timeout(20):
        while not named.exists():
            await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(int(named.read_text()), 0)


async def test_where_no_child_can_be_made_nothing_is_held_against_a_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_room() -> int:
        raise OSError("no process is left")

    monkeypatch.setattr(os, "fork", no_room)
    assert await ForkedTrial().survives(fails)


async def test_child_may_take_a_memory_and_its_parent_keeps_its_own_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    assert await ForkedTrial().survives(lambda: None)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
