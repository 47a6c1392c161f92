"""Consuming from a real Kafka: what counts of a partition, and where a consumer goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection

from ops.kafka.broker import Broker
from ops.topics import ensure_topics
from placet import CheckpointRefused, Consumer, NotConfigured, Unreachable, consume
from placet.consuming import kafka_run
from placet.consuming.events import Wanted
from placet.consuming.kafka import KafkaLog
from placet.consuming.kafka_run import KafkaRun
from placet.consuming.place import Place, place_text
from placet.consuming.records import Reader, Schemas
from placet.consuming.registry import Registry
from placet.transport.rest import RestTransport
from schemas.events.executions import ExecutionPaused
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.message import Message
from schemas.record import EventMeta
from schemas.topics import MAX_MESSAGE_BYTES, Topics
from tests.conftest import TEST_PARTITIONS
from tests.log.connections import lose_all
from tests.sdk.consuming import Kept, registry_alone, take
from tests.sdk.scripted import QUICK, Scripted, serving

KEY = b"acme/books/run"


@dataclass
class Log:
    """The events topic of a log that a test writes itself, with the registry that has its schemas."""

    producer: AIOKafkaProducer
    bootstrap: str
    topics: Topics
    registry_url: str
    ends: dict[int, int] = field(default_factory=dict)

    def consumer(self, **more: Any) -> Consumer:
        where = {"bootstrap_servers": self.bootstrap, "topic_prefix": self.topics.prefix, "patience": QUICK}
        return consume(self.registry_url, **{**where, **more})

    async def write(
        self, body: Message, term: int, name: str, partition: int = 0, key: bytes = KEY, **headers: bytes
    ) -> int:
        """Append an event with an id; returns its offset."""
        record = event_record(body, EventMeta(name, 1_800_000_000_000, term, 1, "c", "d", "acme"), key)
        written = await self.producer.send_and_wait(
            self.topics.executions,
            record.value,
            record.key,
            partition,
            headers=[(label, headers.get(label, value)) for label, value in record.headers],
        )
        return int(written.offset)

    async def claim(self, after: int, partition: int = 0) -> int:
        body = WriterClaimed(claim_id="c", after=after, worker="w")
        return await self.write(body, after, f"claim-{partition}-{after}", partition, b"_log/%d" % partition)

    async def pause(self, term: int, name: str, partition: int = 0, reason: str = "lunch") -> int:
        return await self.write(ExecutionPaused(reason=reason, by="rita"), term, name, partition)


@asynccontextmanager
async def logged(kafka: str, topics: Topics) -> AsyncIterator[Log]:
    async with (
        serving(Scripted(on_http=registry_alone)) as script,
        AIOKafkaProducer(bootstrap_servers=kafka, max_request_size=MAX_MESSAGE_BYTES) as producer,
    ):
        yield Log(producer, kafka, topics, script.url)


async def whole(consumer: Consumer) -> list[str]:
    return [one.id async for one in consumer]


async def test_consume_of_an_empty_log_ends_at_once(kafka: str, topics: Topics) -> None:
    async with logged(kafka, topics) as log:
        assert await whole(log.consumer(follow=False)) == []
        assert await whole(log.consumer(follow=False, start="latest")) == []


async def test_case_consume_delivers_no_record_of_a_stale_writer(kafka: str, topics: Topics) -> None:
    async with logged(kafka, topics) as log:
        await log.pause(-1, "before any claim")
        first = await log.claim(-1)
        await log.pause(first, "a")
        second = await log.claim(first)
        await log.pause(first, "zombie")
        await log.pause(second, "b")
        await log.claim(first)
        await log.pause(second + 3, "under a claim that lost")
        await log.pause(second, "c")
        assert await whole(log.consumer(follow=False)) == ["a", "b", "c"]


async def test_consume_goes_on_in_the_middle_of_a_term_with_the_claim_in_force(
    kafka: str, topics: Topics
) -> None:
    async with logged(kafka, topics) as log:
        first = await log.claim(-1)
        for name in "abc":
            await log.pause(first, name)
        kept = Kept()
        (a, b) = await take(log.consumer(checkpoint=kept), 2)
        second = await log.claim(first)
        await log.pause(first, "zombie")
        await log.pause(second, "d")
        # The second event was not done yet.
        assert await whole(log.consumer(checkpoint=kept, follow=False)) == ["b", "c", "d"]
        assert await whole(log.consumer(checkpoint=kept, follow=False)) == []
        assert await whole(log.consumer(start=a.cursor, follow=False)) == ["b", "c", "d"]
        assert await whole(log.consumer(start=b.cursor, follow=False, types="ExecutionResumed")) == []


async def test_consume_of_several_partitions_keeps_the_position_of_each(kafka: str, topics: Topics) -> None:
    async with logged(kafka, topics) as log:
        terms = [await log.claim(-1, partition) for partition in range(TEST_PARTITIONS)]
        for partition, term in enumerate(terms[:-1]):
            for number in range(3):
                await log.pause(term, f"{partition}-{number}", partition)
        seen: list[str] = []
        kept = Kept()
        for _ in range(4):
            seen += [one.id for one in await take(log.consumer(checkpoint=kept), 3)][:2]
        seen += await whole(log.consumer(checkpoint=kept, follow=False))
    assert sorted(seen) == [f"{partition}-{number}" for partition in range(3) for number in range(3)]


async def test_consume_from_the_latest_knows_which_writer_is_in_force(kafka: str, topics: Topics) -> None:
    async with logged(kafka, topics) as log:
        first = await log.claim(-1)
        await log.pause(first, "a")
        second = await log.claim(first)
        await log.pause(first, "zombie at the end")
        kept, saved = Kept(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def note(cursor: str) -> None:
            loop.call_soon_threadsafe(saved.set)

        kept.on_save = note
        following = asyncio.ensure_future(take(log.consumer(start="latest", checkpoint=kept), 2))
        # The position is saved before anything has come: what comes while the program is away is not lost.
        await asyncio.wait_for(saved.wait(), 60)
        await log.pause(first, "zombie")
        await log.pause(second, "b")
        await log.pause(second, "c")
        assert [one.id for one in await following] == ["b", "c"]


async def test_run_from_the_latest_tells_its_position_before_a_connection_that_fails(
    kafka: str, topics: Topics
) -> None:
    async with logged(kafka, topics) as log:
        term = await log.claim(-1)
        await log.pause(term, "before")
        registry = Registry(RestTransport(log.registry_url, None, QUICK))
        where = KafkaLog.of(kafka, None, topics.prefix, None)
        broken = KafkaRun(where.consumer(), where.topic, Reader(Schemas(registry), None), Wanted())
        await broken.open("latest")
        await log.pause(term, "after the position was taken")
        await broken.close()
        (reached,) = await broken.poll()
        await registry.close()
        assert reached.event is None
        found = await whole(log.consumer(start=reached.cursor, follow=False))
    assert found == ["after the position was taken"]


async def test_consume_of_long_values_and_unknown_types(kafka: str, topics: Topics) -> None:
    async with logged(kafka, topics) as log:
        term = await log.claim(-1)
        for number in range(20):
            await log.pause(term, f"long-{number}", reason="ж" * 125 * 1024)
        await log.write(
            ExecutionPaused(reason="lunch", by="rita"),
            term,
            "new",
            ce_type=b"placet.events.ExecutionTeleported",
        )
        found = [one async for one in log.consumer(follow=False)]
    assert [one.id for one in found] == [*(f"long-{number}" for number in range(20)), "new"]
    assert all(len(one.raw) > 250 * 1024 for one in found[:-1])
    assert (found[0].data["reason"], found[-1].type) == ("ж" * 125 * 1024, "ExecutionTeleported")


async def test_consume_from_a_position_of_another_log_is_an_error(kafka: str, topics: Topics) -> None:
    async with logged(kafka, topics) as log:
        term = await log.claim(-1)
        offset = await log.pause(term, "a")
        (a,) = await take(log.consumer(), 1)
        of = topics.executions
        for place in (Place(offset, term, "other"), Place(offset + 1, term, "a"), Place(99, term, "a")):
            with pytest.raises(CheckpointRefused) as error:
                await whole(log.consumer(start=place_text(of, {0: place}), follow=False))
            assert error.value.why == "other_log"
        assert await whole(log.consumer(start=a.cursor, follow=False)) == []


async def test_consume_over_a_broker_that_is_killed_loses_and_repeats_nothing(
    broker: Broker, topic_prefix: str
) -> None:
    topics = Topics(prefix=topic_prefix)
    await ensure_topics(broker.bootstrap_servers, topics=topics, partitions=1)
    async with logged(broker.bootstrap_servers, topics) as log:
        term = await log.claim(-1)
        await log.pause(term, "0")
        seen: list[str] = []
        async with asyncio.timeout(120):
            async for one in log.consumer():
                seen.append(one.id)
                if len(seen) == 20:
                    break
                if len(seen) == 10:
                    await asyncio.to_thread(broker.kill)
                    await asyncio.to_thread(broker.start)
                await log.pause(term, f"{len(seen)}")
    assert seen == [f"{number}" for number in range(20)]


async def test_consume_of_a_topic_that_is_not_there_is_an_error(kafka: str, topic_prefix: str) -> None:
    async with serving(Scripted(on_http=registry_alone)) as script:
        where: dict[str, Any] = {"bootstrap_servers": kafka, "topic_prefix": f"{topic_prefix}x"}
        with pytest.raises(NotConfigured, match="has no topic"):
            await whole(consume(script.url, **where))


async def test_consume_where_no_kafka_answers_ends_after_its_patience() -> None:
    quick = QUICK.__class__(request_s=0.1, first_delay_s=0.01)
    with pytest.raises(Unreachable, match="cannot be read"):
        await whole(consume("http://127.0.0.1:1", bootstrap_servers="127.0.0.1:1", patience=quick))


def test_consume_from_kafka_by_agent_is_refused() -> None:
    with pytest.raises(ValueError, match="only for a gateway"):
        consume("http://127.0.0.1:1", bootstrap_servers="127.0.0.1:1", agents="bot")


@pytest.mark.parametrize("settings", ["nowhere.json", {"security_protocol": "SSL", "ssl_cafile": "nowhere"}])
def test_consume_from_kafka_by_settings_that_cannot_be_used_is_refused(settings: Any) -> None:
    with pytest.raises(NotConfigured):
        consume("http://127.0.0.1:1", bootstrap_servers="127.0.0.1:1", kafka_settings=settings)


def test_consumer_under_uvloop_whose_connections_were_lost_connects_again(
    kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumers: list[AIOKafkaConsumer] = []
    opened = KafkaLog.consumer

    def kept(log: KafkaLog) -> AIOKafkaConsumer:
        consumers.append(opened(log))
        return consumers[-1]

    monkeypatch.setattr(KafkaLog, "consumer", kept)
    for name in ("send", "_send_sasl_token"):
        # As aiokafka is in a process of a user: the servers' code makes it handle a closed transport.
        method = getattr(AIOKafkaConnection, name)
        monkeypatch.setattr(AIOKafkaConnection, name, getattr(method, "__wrapped__", method))
    # Brokers are asked after each poll without a record.
    monkeypatch.setattr(kafka_run, "QUIET_S", 0)

    async def read() -> list[str]:
        await ensure_topics(kafka, topics=(topics := Topics(topic_prefix)), partitions=1)
        async with logged(kafka, topics) as log:
            term = await log.claim(-1)
            await log.pause(term, "a")
            events = aiter(log.consumer())
            found = [(await anext(events)).id]
            await lose_all(consumers[0]._client)
            waiting = asyncio.ensure_future(anext(events))
            async with asyncio.timeout(60):
                while len(consumers) == 1 and not waiting.done():
                    await asyncio.wait([waiting], timeout=0.05)
            await log.pause(term, "b")
            found.append((await waiting).id)
            await events.aclose()
            return found

    assert uvloop.run(read()) == ["a", "b"]
