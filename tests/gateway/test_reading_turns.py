"""What a reader that catches up may take: one turn at a time for its subject, and a limited time."""

from __future__ import annotations

import asyncio

import pytest

from gateway.pushes import catching_up, reading_turns
from gateway.pushes.resyncs import Resync
from tests.gateway.catching import ANNA, Returner
from tests.gateway.test_catching_up import Site, begun


async def test_catch_up_that_takes_too_long_says_that_its_reader_is_too_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catching_up, "WHOLE_S", 0.05)
    site = Site()
    site.story()
    reader = await site.caught_up(
        {"events"}, site.live.position.key.write(site.live.position.key.start()), Returner(has_room=False)
    )
    assert reader.reasons == [Resync.TOO_SLOW]


async def test_catch_up_of_one_subject_takes_one_turn_at_a_time_and_another_gets_the_next() -> None:
    turns = reading_turns.ReadingTurns()
    otto = Returner(ANNA.model_copy(update={"subject": "otto"}))
    got: list[str] = []
    go = asyncio.Event()

    async def read(reader: Returner) -> None:
        async with turns.turn(reader):
            got.append(reader.actor.subject)
            await go.wait()

    reading = [asyncio.create_task(read(Returner())) for _ in range(8)]
    await begun()
    assert got == ["anna"]
    reading.append(asyncio.create_task(read(otto)))
    await begun()
    assert got == ["anna", "otto"]
    go.set()
    await asyncio.gather(*reading)
    assert got.count("anna") == 8
