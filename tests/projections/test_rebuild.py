"""`placet replay` beneath the command: rebuild beside the live view, compare, swap or say why not."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from host.key_files import load_published
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower
from log.places import Bounds, TopicPartition
from ops.topics import ensure_topics
from projections.audit.head_files import HeadFiles
from projections.audit.heads import HeadsDisagree, HeadSigner, SignedHeads
from projections.folds.rows import Row
from projections.projector import Projector
from projections.queries import resources
from projections.queries.views import open_views
from projections.rebuild import Outcome, Plan, rebuild
from projections.store.port import Batch, ViewReplaced
from projections.store.tables import VIEW_TABLES
from projections.store.urls import identity_of, new_generation, open_view
from projections.tables.executions import EXECUTIONS
from projections.tables.log import DEAD_LETTERS
from schemas.audit import AUDIT_KEY, AUDIT_KEYS
from schemas.dead_letters import letter_headers
from schemas.events.executions import CommandAbandoned
from schemas.record import RawRecord
from schemas.topics import Topics, partition_of
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder, key_of, many_runs, policy_key, policy_published, started
from tests.projections.kafka_log import produce, until

pytestmark = pytest.mark.broker
PARTITIONS = 3


async def a_log_on(kafka: str, prefix: str) -> tuple[Topics, LogBuilder, LogBuilder]:
    topics = Topics(prefix)
    await ensure_topics(kafka, topics=topics, partitions=PARTITIONS)
    builder = many_runs(LogBuilder(PARTITIONS).claim_all(), 25, seed=6)
    # A decider's own question for the time, which stands under a key that is no execution's.
    given_up = CommandAbandoned(command="ExpireDue", command_offset=7, attempts=3, trials=3)
    builder.append(key_of("0", "placet", "clock"), [given_up])
    definitions = LogBuilder(1).claim_all()
    definitions.append(policy_key("production"), [policy_published("production", 1)], partition=0)
    await produce(kafka, topics.executions, builder.records)
    await produce(kafka, topics.definitions, definitions.records)
    return topics, builder, definitions


async def replay(kafka: str, topics: Topics, plan: Plan, told: list[int] | None = None) -> Outcome:
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    try:
        return await rebuild(plan, tail, topics, lambda done, of: None if told is None else told.append(done))
    finally:
        await tail.close()


def change_one_row(url: str) -> None:
    """Let somebody meddle with a live view."""
    store = open_view(url)
    row: Row = store.load(EXECUTIONS, [("acme", "main", "run-3")])[0] | {"state": "running"}
    _overwrite(store, row)
    store.close()


def _overwrite(store: object, row: Row) -> None:
    store.apply(Batch([], upserts={EXECUTIONS.name: [tuple(row.values())]}))  # type: ignore[attr-defined]


async def test_replay_without_a_live_view_makes_one(
    kafka: str, topic_prefix: str, database_url: str, tmp_path: Path
) -> None:
    topics, builder, definitions = await a_log_on(kafka, topic_prefix)
    told: list[int] = []
    outcome = await replay(kafka, topics, Plan(database_url, database_url), told)
    assert (outcome.refused, outcome.comparison) == ("", None)
    assert outcome.records == told[-1] == sum(map(len, builder.records)) + 2
    made, expected = (
        Filler(open_view(database_url), topics),
        Filler(open_view(f"sqlite:///{tmp_path}/e.db"), topics),
    )
    expected.fill(builder, definitions)
    assert made.everything() == expected.everything()
    made.store.close()
    expected.store.close()


async def test_replay_of_an_equal_view_swaps_it_and_readers_see_the_new_one(
    kafka: str, topic_prefix: str, database_url: str
) -> None:
    topics, builder, definitions = await a_log_on(kafka, topic_prefix)
    live = Filler(open_view(database_url), topics)
    live.fill(builder, definitions, topic_id=None)
    views = open_views(database_url, topics)
    before = identity_of(database_url)
    row, positions = views.read_now(lambda moment: resources.execution(moment, "acme", "main", "run-3"))
    outcome = await replay(kafka, topics, Plan(database_url, database_url))
    assert outcome.refused == ""
    assert outcome.comparison is not None
    assert outcome.comparison.is_equal
    assert {table.name for table in outcome.comparison.tables} == {table.name for table in VIEW_TABLES}
    assert identity_of(database_url) != before
    assert views.read_now(lambda moment: resources.execution(moment, "acme", "main", "run-3")) == (
        row,
        positions,
    )
    views.close()
    live.store.close()


async def test_replay_of_a_changed_view_prints_the_row_and_leaves_the_view(
    kafka: str, topic_prefix: str, database_url: str
) -> None:
    topics, builder, definitions = await a_log_on(kafka, topic_prefix)
    live = Filler(open_view(database_url), topics)
    live.fill(builder, definitions, topic_id=None)
    change_one_row(database_url)
    before = identity_of(database_url)
    outcome = await replay(kafka, topics, Plan(database_url, database_url))
    assert outcome.comparison is not None
    differing = [table for table in outcome.comparison.tables if table.differing]
    assert [(table.name, table.differing) for table in differing] == [("executions", 1)]
    assert differing[0].differences[0].key == ("acme", "main", "run-3")
    assert differing[0].differences[0].columns == ("state",)
    assert "differs" in outcome.refused
    assert identity_of(database_url) == before
    forced = await replay(kafka, topics, Plan(database_url, database_url, force=True))
    assert forced.refused == ""
    assert identity_of(database_url) != before
    live.store.close()


async def test_replay_into_another_database_fills_and_compares_it(
    kafka: str, topic_prefix: str, database_url: str, tmp_path: Path
) -> None:
    topics, builder, definitions = await a_log_on(kafka, topic_prefix)
    live_url = f"sqlite:///{tmp_path}/live.db"
    live = Filler(open_view(live_url), topics)
    live.fill(builder, definitions, topic_id=None)
    outcome = await replay(kafka, topics, Plan(live_url, database_url))
    assert outcome.comparison is not None
    assert outcome.comparison.is_equal
    filled = Filler(open_view(database_url), topics)
    assert filled.everything() == live.everything()
    filled.store.close()
    live.store.close()


async def test_replay_beside_a_running_projector_loses_nothing(
    kafka: str, topic_prefix: str, database_url: str, tmp_path: Path
) -> None:
    topics, builder, definitions = await a_log_on(kafka, topic_prefix)
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    projector = Projector(tail, lambda: open_view(database_url), topics, lambda state: None)
    running = asyncio.create_task(projector.run())
    known = [len(records) for records in builder.records]
    many_runs(builder, 30, seed=8, tenant="other")
    later = [records[begin:] for begin, records in zip(known, builder.records, strict=True)]
    await until(lambda: identity_of(database_url) != (-1, -1), "the live view is there")
    outcome, _ = await asyncio.gather(
        replay(kafka, topics, Plan(database_url, database_url)), produce(kafka, topics.executions, later)
    )
    assert outcome.refused == ""
    views = open_views(database_url, topics)
    wanted = {number: len(records) for number, records in enumerate(builder.records)}, 2
    await until(lambda: views.read_now(lambda moment: None)[1] == wanted, "the swapped view is followed")
    projector.stop()
    await running
    await tail.close()
    views.close()
    swapped, expected = (
        Filler(open_view(database_url), topics),
        Filler(open_view(f"sqlite:///{tmp_path}/e.db"), topics),
    )
    expected.fill(builder, definitions)
    assert swapped.everything() == expected.everything()
    swapped.store.close()
    expected.store.close()


def letters_of(topics: Topics, partition: int, count: int) -> list[RawRecord]:
    """Letters about the first commands of a partition, as its decider writes them."""
    return [
        RawRecord(
            partition,
            number,
            0,
            b"noise",
            b"?",
            letter_headers(topics.commands, partition, number, 1_760_000_000_000, "malformed", "noise"),
        )
        for number in range(count)
    ]


async def follow(kafka: str, topics: Topics, url: str, letters: int) -> None:
    """Let a projector read the log until the view has so many dead letters, and end it."""
    seen = Filler(open_view(url), topics)
    tail = Follower(KafkaSettings(kafka), BULK)
    await tail.open()
    projector = Projector(tail, lambda: open_view(url), topics, lambda state: None)
    running = asyncio.create_task(projector.run())
    await until(lambda: len(seen.rows(DEAD_LETTERS)) == letters, "the letters are in the view")
    seen.store.close()
    projector.stop()
    await running
    await tail.close()


class WrittenMeanwhile(Follower):
    """A log that has grown, and a live view that has read that, once its ends were told for the first time."""

    def __init__(self, address: KafkaSettings, grow: Callable[[], Awaitable[None]]) -> None:
        super().__init__(address)
        self._grow: Callable[[], Awaitable[None]] | None = grow

    async def bounds(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Bounds]:
        found = await super().bounds(partitions)
        grow, self._grow = self._grow, None
        if grow is not None:
            await grow()
        return found


async def test_replay_while_the_log_is_written_to_takes_no_other_log_for_it(
    kafka: str, topic_prefix: str, database_url: str
) -> None:
    topics, builder, definitions = await a_log_on(kafka, topic_prefix)
    live = Filler(open_view(database_url), topics)
    live.fill(builder, definitions, topic_id=None)

    async def grow() -> None:
        before = [len(records) for records in builder.records]
        many_runs(builder, 5, seed=7)
        fresh = zip(builder.records, before, strict=True)
        await produce(kafka, topics.executions, [records[count:] for records, count in fresh])
        live.fill(builder, definitions, topic_id=None)

    tail = WrittenMeanwhile(KafkaSettings(kafka), grow)
    await tail.open()
    try:
        outcome = await rebuild(Plan(database_url, database_url), tail, topics, lambda done, of: None)
    finally:
        await tail.close()
        live.store.close()
    assert (outcome.refused, outcome.note) == ("", "")
    assert outcome.comparison is not None
    assert outcome.comparison.is_equal


async def forget(kafka: str, topics: Topics, before: dict[int, int]) -> None:
    """Delete the first dead letters of some partitions, as their retention does."""
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        await admin.delete_records(
            {
                KafkaPartition(topics.dead_letters, at): RecordsToDelete(before_offset=offset)
                for at, offset in before.items()
            }
        )
    finally:
        await admin.close()


async def test_replay_compares_dead_letters_and_the_swapped_view_has_them(
    kafka: str, topic_prefix: str, database_url: str
) -> None:
    topics, _, _ = await a_log_on(kafka, topic_prefix)
    await produce(kafka, topics.dead_letters, [letters_of(topics, 1, 3)])
    await follow(kafka, topics, database_url, 3)
    before = identity_of(database_url)
    outcome = await replay(kafka, topics, Plan(database_url, database_url))
    assert (outcome.refused, outcome.note) == ("", "")
    assert outcome.comparison is not None
    assert outcome.comparison.is_equal
    assert outcome.comparison.offsets[f"{topics.dead_letters}/001"] == 3
    assert identity_of(database_url) != before
    swapped = Filler(open_view(database_url), topics)
    assert [row["log_offset"] for row in swapped.rows(DEAD_LETTERS)] == [0, 1, 2]
    forged = swapped.rows(DEAD_LETTERS)[0] | {"log_offset": 99}
    swapped.store.apply(Batch([], upserts={DEAD_LETTERS.name: [tuple(forged.values())]}))
    swapped.store.close()
    meddled = await replay(kafka, topics, Plan(database_url, database_url))
    assert meddled.comparison is not None
    assert [table.name for table in meddled.comparison.tables if table.differing] == ["dead_letters"]
    assert "differs" in meddled.refused


async def test_replay_excuses_letters_that_the_log_has_forgotten(
    kafka: str, topic_prefix: str, database_url: str
) -> None:
    topics, builder, _ = await a_log_on(kafka, topic_prefix)
    await produce(kafka, topics.dead_letters, [letters_of(topics, 0, 2), letters_of(topics, 1, 3)])
    await follow(kafka, topics, database_url, 5)
    await forget(kafka, topics, {0: 2, 1: 1})
    told: list[int] = []
    outcome = await replay(kafka, topics, Plan(database_url, database_url), told)
    assert outcome.comparison is not None
    assert outcome.comparison.is_equal
    assert outcome.refused == ""
    assert outcome.records == sum(map(len, builder.records)) + 2 + 2
    swapped = Filler(open_view(database_url), topics)
    kept = [(row["log_partition"], row["log_offset"]) for row in swapped.rows(DEAD_LETTERS)]
    swapped.store.close()
    assert kept == [(1, 1), (1, 2)]
    await produce(kafka, topics.dead_letters, [letters_of(topics, 2, 1)])
    await follow(kafka, topics, database_url, 3)


async def test_replay_that_lost_its_race_is_reported_and_changes_nothing(
    database_url: str, tmp_path: Path
) -> None:
    open_view(database_url).close()
    known = identity_of(database_url)
    slow, fast = new_generation(database_url), new_generation(database_url)
    fast.store.close()
    fast.swap(known, False)
    now = identity_of(database_url)
    slow.store.close()
    with pytest.raises(ViewReplaced, match="another rebuild"):
        slow.swap(known, False)
    slow.discard()
    assert identity_of(database_url) == now


async def test_replay_of_a_log_shorter_than_the_view_asks_for_force(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    topics, builder, _ = await a_log_on(kafka, topic_prefix)
    url = f"sqlite:///{tmp_path}/{uuid.uuid4().hex}.db"
    live = Filler(open_view(url), topics)
    live.fill(many_runs(builder, 3, seed=11, tenant="other"), topic_id=None)
    live.store.close()
    outcome = await replay(kafka, topics, Plan(url, url))
    assert outcome.note == "the live view has read more than the log holds"
    assert "--force" in outcome.refused


async def test_replay_of_a_log_that_was_signed_longer_swaps_nothing_in(
    kafka: str, topic_prefix: str, database_url: str, tmp_path: Path
) -> None:
    topics, builder, definitions = await a_log_on(kafka, topic_prefix)
    longer = Filler(open_view(f"sqlite:///{tmp_path}/longer.db"), topics)
    builder.append(key_of("run-1"), [started()])
    longer.fill(builder, definitions)
    key = load_published(tmp_path / "keys", AUDIT_KEY, AUDIT_KEYS)
    believed = {key.kid: key.private_key.public_key()}
    signed = SignedHeads(HeadFiles(tmp_path / "heads"), believed)
    with signed.files.writing():
        head_signer = HeadSigner(signed.files, key, believed, every_events=1)
        head_signer.begin(longer.store)
        head_signer.turn(longer.store, is_caught_up=True)
    before = identity_of(database_url)
    for force in (False, True):
        with pytest.raises(HeadsDisagree, match="its tail was cut off"):
            await replay(kafka, topics, Plan(database_url, database_url, force, signed))
    assert identity_of(database_url) == before
    await produce(
        kafka,
        topics.executions,
        [records[-1:] if at == _last(builder) else [] for at, records in enumerate(builder.records)],
    )
    assert (await replay(kafka, topics, Plan(database_url, database_url, heads=signed))).refused == ""
    longer.store.close()


def _last(builder: LogBuilder) -> int:
    return partition_of(key_of("run-1"), builder.partitions)
