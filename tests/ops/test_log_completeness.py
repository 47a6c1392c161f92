"""`placet up` on a log that is shorter than the views or the audit heads: refused before anything is decided."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from host.key_files import load_published
from log.kafka.log import KafkaLog
from log.places import TopicPartition
from ops import log_completeness
from ops.config import StackConfig
from ops.errors import LogCutError, OpsError
from ops.log_completeness import check_log_complete
from projections.audit.head_files import HeadFiles
from projections.store.port import Batch, Move, Position
from projections.store.urls import exists, open_view
from schemas.audit import AUDIT_KEY, AUDIT_KEYS, TopicRole, TreeHead, sign_head
from schemas.record import OutRecord
from schemas.topics import Topics

pytestmark = pytest.mark.broker
HELD = 3


@pytest.fixture
async def config(kafka: str, topics: Topics, tmp_path: Path) -> StackConfig:
    """An installation with some records in the first partition of the executions."""
    log = KafkaLog(kafka, topics)
    for _ in range(HELD):
        await log.send(TopicPartition(topics.executions, 0), OutRecord(b"k", b"v", ()))
    await log.close()
    return StackConfig(
        data_dir=str(tmp_path),
        bootstrap_servers=kafka,
        embedded_kafka=False,
        database_url=f"sqlite:///{tmp_path}/views.sqlite",
        gateway_port=0,
        url="",
        topic_prefix=topics.prefix,
    )


def views_stand(
    config: StackConfig, at: str, offset: int, number: int = 0, before: int | None = None
) -> None:
    def position(next_offset: int) -> Position:
        return Position(f"{config.topic_prefix}.{at}", number, "first", next_offset, 0, "r")

    view = open_view(config.database_url)
    view.apply(Batch([Move(None if before is None else position(before), position(offset))]))
    view.close()


def head_signed(config: StackConfig, topic: TopicRole, last_offset: int) -> Path:
    key = load_published(config.directory.keys, AUDIT_KEY, AUDIT_KEYS)
    files = HeadFiles(config.directory.root / "audit" / "heads")
    tree = TreeHead(topic, 0, last_offset, 1, "00" * 32)
    with files.writing():
        files.append(sign_head(key, "acme", "2026-01-01T00:00:00.000Z", None, [tree]))
    return files.path("acme")


async def check(config: StackConfig) -> None:
    await asyncio.to_thread(check_log_complete, config)


async def test_log_of_a_new_installation_is_taken(config: StackConfig) -> None:
    await check(config)
    assert not exists(config.database_url), "nothing is made by looking"


async def test_log_that_holds_all_that_is_known_of_it_is_taken(config: StackConfig) -> None:
    views_stand(config, "executions", HELD)
    # This topic forgets its beginning, and nothing is decided by it.
    views_stand(config, "dead-letters", 99)
    head_signed(config, "executions", HELD - 1)
    await check(config)


@pytest.mark.parametrize(("at", "offset"), [("executions", HELD + 1), ("definitions", 1)])
async def test_log_that_ends_before_the_views_is_refused_with_the_partition(
    config: StackConfig, at: str, offset: int
) -> None:
    views_stand(config, at, offset)
    held = HELD if at == "executions" else 0
    where = rf"{re.escape(config.topic_prefix)}\.{at}/0 ends at offset {held}, but the views .* {offset}: "
    with pytest.raises(LogCutError, match=where + ".* Restore all topics from a backup") as refused:
        await check(config)
    assert refused.value.exit_code == 3


async def test_log_whose_first_facts_were_deleted_is_refused_with_advice_that_costs_none(
    config: StackConfig,
) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=config.bootstrap_servers)
    await admin.start()
    where = KafkaPartition(f"{config.topic_prefix}.executions", 0)
    await admin.delete_records({where: RecordsToDelete(before_offset=1)})
    await admin.close()
    views_stand(config, "executions", HELD)
    with pytest.raises(
        LogCutError, match=r"executions/0 begins at offset 1, .* Restore all topics"
    ) as refused:
        await check(config)
    assert "replay" not in str(refused.value)


async def test_log_that_lost_a_partition_which_the_views_have_read_is_refused(config: StackConfig) -> None:
    views_stand(config, "executions", 1, number=77)
    with pytest.raises(LogCutError, match=r"executions/77 ends at offset 0"):
        await check(config)


async def test_log_that_ends_before_an_audit_head_is_refused_also_without_views(config: StackConfig) -> None:
    file = head_signed(config, "executions", HELD)
    with pytest.raises(LogCutError, match=rf"head 1 in {file} was signed up to {HELD + 1}: "):
        await check(config)


async def test_heads_kept_in_another_directory_are_asked(config: StackConfig, tmp_path: Path) -> None:
    head_signed(config, "definitions", 0)
    (tmp_path / "audit" / "heads").rename(tmp_path / "kept")
    await check(config)
    with pytest.raises(LogCutError, match="kept"):
        await check(replace(config, audit_heads_dir=str(tmp_path / "kept")))


async def test_log_that_goes_on_while_it_is_looked_at_is_taken(
    config: StackConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A projector of another host reads what is decided meanwhile."""
    views_stand(config, "executions", HELD)
    ends = log_completeness._ends

    async def asked(config: StackConfig) -> dict[TopicPartition, int]:
        found = await ends(config)
        views_stand(config, "executions", HELD + 1, before=HELD)
        return found

    monkeypatch.setattr(log_completeness, "_ends", asked)
    await check(config)


async def test_heads_of_another_installation_are_told_as_such(config: StackConfig, tmp_path: Path) -> None:
    other = replace(config, data_dir=str(tmp_path / "other"))
    head_signed(other, "executions", HELD + 9)
    load_published(config.directory.keys, AUDIT_KEY, AUDIT_KEYS)
    shared = replace(config, audit_heads_dir=str(other.directory.root / "audit" / "heads"))
    with pytest.raises(OpsError, match="not signed by this installation's keys"):
        await check(shared)
