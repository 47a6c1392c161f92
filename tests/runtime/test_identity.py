"""A data directory knows its log: a recreated topic is another one, and nothing may start on it."""

from pathlib import Path

import pytest

from services.runtime.identity import OtherLog, check_identity
from tests.runtime.logs import World


async def test_check_identity_same_log_passes_again(world: World, tmp_path: Path) -> None:
    await check_identity(world.log, tmp_path / "topics.json")
    await check_identity(world.log, tmp_path / "topics.json")


async def test_check_identity_recreated_topic_is_refused_with_its_name(world: World, tmp_path: Path) -> None:
    await check_identity(world.log, tmp_path / "topics.json")
    await world.recreate(world.log.topics.executions)

    with pytest.raises(OtherLog, match="was recreated") as refused:
        await check_identity(world.log, tmp_path / "topics.json")

    assert refused.value.topic == world.log.topics.executions
