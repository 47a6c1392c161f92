"""From where on the log is signed, lost beside the keys: found again, or refused, and never moved without a word."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from log.places import TopicPartition
from ops.config import StackConfig
from ops.errors import UsageError
from ops.install import install_keys
from ops.signing_start import install_signed_from
from schemas.event_signatures import OFF, event_signer_of, load_signatures
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.record import EventMeta
from schemas.signed_from import COPY, SIGNED_FROM, read_signed_from
from tests.log.logs import PARTITIONS, KafkaWorld, installation
from tests.runtime.lab import Lab
from tests.runtime.test_snapshots import some_history

pytestmark = pytest.mark.broker


@dataclass
class Installed:
    """A log that deciders signed from its beginning, and the installation's files."""

    lab: Lab
    config: StackConfig

    @property
    def path(self) -> Path:
        return self.config.directory.keys / SIGNED_FROM

    @property
    def from_the_beginning(self) -> dict[str, tuple[int, ...]]:
        topics = self.lab.log.topics
        return {topics.executions: (0,) * PARTITIONS, topics.definitions: (0,)}

    def lose(self, *names: str) -> None:
        for name in names:
            (self.config.directory.keys / name).unlink()

    async def install(self, word: str = "required") -> None:
        await asyncio.to_thread(install_signed_from, replace(self.config, log_signatures=word))

    async def claim_by_a_stranger(self, tp: TopicPartition) -> int:
        body = WriterClaimed(claim_id="stranger", after=0, worker="w")
        record = event_record(body, EventMeta("e", 0, 0, 0, "c", "", ""), b"_log/%d" % tp.partition)
        return await (await self.lab.log.appender()).append(tp, [record])


@pytest.fixture
async def installed(kafka_log_world: KafkaWorld, tmp_path: Path, seed: int) -> AsyncIterator[Installed]:
    log = kafka_log_world.log
    config = installation(kafka_log_world, tmp_path)
    install_keys(config.directory)
    found = Installed(Lab(log, PARTITIONS, random.Random(seed)), config)
    try:
        await found.install()
        settings = {"keys_dir": str(config.directory.keys)}
        found.lab.event_signer, found.lab.signatures = event_signer_of(settings), load_signatures(settings)
        await some_history(found.lab)
        yield found
    finally:
        await found.lab.close()


async def test_deleted_file_is_made_again_from_its_copy(installed: Installed) -> None:
    before = installed.path.read_bytes()
    installed.lose(SIGNED_FROM)
    await installed.install()
    assert installed.path.read_bytes() == before
    assert read_signed_from(installed.path) == installed.from_the_beginning


async def test_file_and_copy_deleted_of_a_log_signed_from_its_beginning_are_0_again(
    installed: Installed,
) -> None:
    installed.lose(SIGNED_FROM, COPY)
    await installed.install()
    assert read_signed_from(installed.path) == installed.from_the_beginning
    assert installed.path.with_name(COPY).read_bytes() == installed.path.read_bytes()


async def test_file_without_its_topics_is_no_word_for_the_end_of_the_log(installed: Installed) -> None:
    installed.path.write_text("{}")
    with pytest.raises(UsageError, match=rf"differs about .* from .*{COPY}"):
        await installed.install()
    installed.lose(COPY)
    await installed.install()
    assert read_signed_from(installed.path) == installed.from_the_beginning


async def test_file_and_copy_deleted_of_a_log_with_an_unsigned_claim_is_refused_by_its_place(
    installed: Installed,
) -> None:
    """Whether it is forged, or of a time when signing was off, nobody can tell."""
    tp = installed.lab.events_tp("x")
    at = await installed.claim_by_a_stranger(tp)
    installed.lose(SIGNED_FROM, COPY)
    with pytest.raises(UsageError, match=rf"claim at {tp}@{at} is not signed\. Restore {SIGNED_FROM}"):
        await installed.install()
    assert not installed.path.exists()


async def test_all_keys_lost_of_a_signed_log_is_refused_and_nothing_is_believed_unsigned(
    installed: Installed,
) -> None:
    shutil.rmtree(installed.config.directory.keys)
    install_keys(installed.config.directory)
    with pytest.raises(UsageError, match=r"is signed by the key \w+, which deciders\.json does not list"):
        await installed.install()
    assert not installed.path.exists()


async def test_signing_switched_off_after_the_file_was_lost_still_owes_what_was_signed(
    installed: Installed,
) -> None:
    installed.lose(SIGNED_FROM, COPY)
    await installed.install(OFF)
    log, tp = installed.lab.log, installed.lab.events_tp("x")
    end = (await log.bounds(tp))[1]
    assert read_signed_from(installed.path)[tp.topic][tp.partition] == (0, end)


async def test_log_signed_in_a_later_part_only_is_refused_with_signing_off_too(installed: Installed) -> None:
    tp = installed.lab.events_tp("x")
    await installed.claim_by_a_stranger(tp)
    installed.lose(SIGNED_FROM, COPY)
    with pytest.raises(UsageError, match=r"is not signed\. Restore"):
        await installed.install(OFF)
    assert not installed.path.exists()
