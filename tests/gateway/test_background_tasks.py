"""The gateway's parts: one that ends, however it does, is told; those that `stop` ends are not."""

from __future__ import annotations

import asyncio

import pytest

from gateway.background_tasks import BackgroundTasks


async def _raises() -> None:
    raise ConnectionError("pulled")


async def _returns() -> None:
    return


async def _is_cancelled_by_its_library() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (_raises, "pulled"),
        (_returns, "a part of the gateway ended"),
        (_is_cancelled_by_its_library, "a part of the gateway ended"),
    ],
)
async def test_part_that_ends_by_itself_is_a_failure(part: object, said: str) -> None:
    told: list[str] = []
    parts = BackgroundTasks()
    parts.on_failure(lambda: told.append("ended"))
    assert callable(part)
    parts.spawn(part())
    async with asyncio.timeout(5):
        await parts.wait_failed()
    assert str(parts.failure) == said
    assert told == ["ended"]
    await parts.stop()


async def test_first_failure_is_kept() -> None:
    parts = BackgroundTasks()
    parts.spawn(_raises())
    parts.spawn(_returns())
    async with asyncio.timeout(5):
        await parts.wait_failed()
        await asyncio.sleep(0)
    assert str(parts.failure) == "pulled"
    await parts.stop()


async def test_parts_that_are_stopped_have_not_failed() -> None:
    parts = BackgroundTasks()
    parts.spawn(asyncio.Event().wait())  # type: ignore[arg-type]
    await asyncio.sleep(0)
    await parts.stop()
    await asyncio.sleep(0)
    assert parts.failure is None
