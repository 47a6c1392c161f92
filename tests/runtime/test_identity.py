"""A data directory knows its log: a recreated topic is another one, and nothing may start on it."""

import asyncio
from pathlib import Path

import pytest

from log.errors import TopicMissing
from services.runtime import identity
from services.runtime.identity import IdsUnreadable, OtherLog, check_identity, watch_identity
from tests.log.logs import World


async def test_check_identity_same_log_passes_again(world: World, tmp_path: Path) -> None:
    await check_identity(world.log, tmp_path / "topics.json")
    await check_identity(world.log, tmp_path / "topics.json")


async def test_check_identity_recreated_topic_is_refused_with_its_name(world: World, tmp_path: Path) -> None:
    await check_identity(world.log, tmp_path / "topics.json")
    await world.recreate(world.log.topics.executions)

    with pytest.raises(OtherLog, match="was recreated") as refused:
        await check_identity(world.log, tmp_path / "topics.json")

    assert refused.value.topic == world.log.topics.executions


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"placet.commands": 1}', "\xff", "[" * 100_000], ids=lambda text: repr(text)[:9]
)
async def test_check_identity_damaged_file_is_told_with_what_to_do_and_kept(
    world: World, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "topics.json"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(IdsUnreadable, match="restore it from a backup") as refused:
        await check_identity(world.log, path)

    assert str(path) in str(refused.value)
    assert path.read_bytes() == text.encode("latin-1")
    path.unlink()
    await check_identity(world.log, path)
    assert await world.log.topic_id(world.log.topics.commands) in path.read_text()


async def test_case_37_topic_that_is_recreated_while_we_run_ends_the_watch_with_its_name(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands would wait for ever, while everybody says ready."""
    monkeypatch.setattr(identity, "WATCH_EVERY_S", 0.01)
    await check_identity(world.log, tmp_path / "topics.json")
    watching = asyncio.create_task(watch_identity(world.log, tmp_path / "topics.json"))

    recreating = asyncio.create_task(world.recreate(world.log.topics.commands))

    with pytest.raises((OtherLog, TopicMissing), match=world.log.topics.commands):
        await asyncio.wait_for(watching, 20)
    await asyncio.gather(recreating, return_exceptions=True)
