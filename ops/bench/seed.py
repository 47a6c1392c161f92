"""Much history in little time: commands signed with the stack's own gateway key and produced straight to Kafka.

The decider checks and decides each as it does any other; only the way through a gateway is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count, islice

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from gateway.identity.keys import load_or_create
from ops.bench.floor import new_producer
from ops.bench.site import PROJECT, TENANT, Site
from schemas import codec
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.commands import ProposeToolCall, StartExecution
from schemas.envelope import Draft, Signer
from schemas.events.holds import HoldOpened
from schemas.ids import derived_id, execution_key
from schemas.message import Message
from schemas.topics import Topics, partition_of

SIGNED_TOGETHER = 256
CALLS_EACH = 10
WITHIN_S = 1_200.0


async def seed(
    site: Site,
    name: str,
    executions: int,
    tool_of: dict[int, str],
    default_tool: str,
    *,
    partition: int | None = None,
) -> None:
    """Start executions and propose ten calls in each; returns when Kafka has the commands.

    Args:
        site: the stack.
        name: start of the executions' names.
        executions: how many.
        tool_of: the tool of a call by its number in the execution.
        default_tool: the tool of the other calls.
        partition: where all of them stand; None spreads them.
    """
    await send(site, _drafts(site, _names(site, name, executions, partition), tool_of, default_tool))


async def send(site: Site, drafts: Iterator[Draft]) -> None:
    """Sign commands with the stack's own gateway key; returns when Kafka has them, in their order."""
    key = load_or_create(site.directory.keys).gateway
    signer = Signer(key.kid, key.private_key)
    producer = new_producer(site)
    await producer.start()
    try:
        while batch := list(islice(drafts, SIGNED_TOGETHER)):
            await _produce(producer, site, signer, batch)
    finally:
        await producer.stop()


async def until_held(site: Site, count: int) -> None:
    """Return when the log holds so many opened holds.

    Raises:
        TimeoutError: it did not come to that.
    """
    topic, kind = Topics(site.topic_prefix).executions, codec.SUBJECTS[HoldOpened].encode()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=site.bootstrap_servers,
        enable_auto_commit=False,
        auto_offset_reset="none",
        **site.security,
    )
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for number in range(site.partitions)]
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        async with asyncio.timeout(WITHIN_S):
            while count > 0:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    count -= sum(("ce_type", kind) in record.headers for record in records)
    finally:
        await consumer.stop()


async def _produce(producer: AIOKafkaProducer, site: Site, signer: Signer, batch: list[Draft]) -> None:
    topic = Topics(site.topic_prefix).commands
    sent = [
        await producer.send(
            topic,
            record.value,
            record.key,
            partition=partition_of(record.key, site.partitions),
            headers=list(record.headers),
        )
        for record in signer.sign(batch)
    ]
    await asyncio.gather(*sent)


def _names(site: Site, name: str, executions: int, partition: int | None) -> Iterator[str]:
    names = (f"{name}-{number}" for number in count())
    if partition is not None:
        names = (one for one in names if _partition(site, one) == partition)
    return islice(names, executions)


def _partition(site: Site, execution_id: str) -> int:
    return partition_of(execution_key(TENANT, PROJECT, execution_id), site.partitions)


def _drafts(
    site: Site, execution_ids: Iterator[str], tool_of: dict[int, str], default_tool: str
) -> Iterator[Draft]:
    actor = Actor(subject=site.agent, tenant=TENANT, project=PROJECT, roles=("agent",), agent=site.agent)
    for execution_id in execution_ids:
        key = execution_key(TENANT, PROJECT, execution_id)
        bodies: list[Message] = [StartExecution(agent=site.agent)]
        bodies += [_call(one, tool_of.get(one, default_tool)) for one in range(CALLS_EACH)]
        for index, body in enumerate(bodies):
            yield Draft(body, actor, derived_id("bench", execution_id, index), key)


def _call(number: int, tool: str) -> ProposeToolCall:
    arguments = canonical({"path": "notes/today.txt", "call": number})
    return ProposeToolCall(call_id=f"c{number}", tool=tool, arguments=arguments)
