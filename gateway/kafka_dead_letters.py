"""The dead letters of one project: read when they are asked for, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from gateway.kafka_client import KafkaConfig, KafkaUnreachable, new_consumer, start, stop
from gateway.problems import Problem
from schemas.headers import rfc3339
from schemas.refusals import Refusal

# Of each partition, so many of the newest letters are looked at.
LOOKED_AT = 2_000
POLL_MS = 2_000


async def read_dead_letters(
    config: KafkaConfig, topic: str, prefix: bytes, limit: int
) -> list[dict[str, Any]]:
    """Letters whose original key begins with a prefix.

    Args:
        config: the cluster.
        topic: the dead letters' topic.
        prefix: of the original records' keys.
        limit: how many at most.

    Raises:
        Problem: 503, Kafka does not answer.
    """
    consumer = new_consumer(config)
    try:
        await start(consumer, config)
        records = await _newest(consumer, topic)
    except (KafkaUnreachable, KafkaError, OSError) as error:
        raise Problem(
            Refusal.UNAVAILABLE, f"the dead letters cannot be read: {error}", retry_after=1
        ) from error
    finally:
        await stop(consumer)
    ours = [record for record in records if (record.key or b"").startswith(prefix)]
    ours.sort(key=lambda record: record.timestamp, reverse=True)
    return [_letter(record) for record in ours[:limit]]


async def _newest(consumer: AIOKafkaConsumer, topic: str) -> list[ConsumerRecord]:
    tps = [TopicPartition(topic, partition) for partition in await _partitions(consumer, topic)]
    consumer.assign(tps)
    first: Mapping[TopicPartition, int] = await consumer.beginning_offsets(tps)
    ends: Mapping[TopicPartition, int] = await consumer.end_offsets(tps)
    for tp in tps:
        consumer.seek(tp, max(first[tp], ends[tp] - LOOKED_AT))
    waiting = {tp for tp in tps if ends[tp] > max(first[tp], 0)}
    records: list[ConsumerRecord] = []
    while waiting:
        polled = await consumer.getmany(timeout_ms=POLL_MS)
        if not polled:
            break
        for tp, part in polled.items():
            records += part
            if part[-1].offset + 1 >= ends[tp]:
                waiting.discard(tp)
    return records


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> list[int]:
    # A consumer's own metadata is of topics that it subscribed to, which this one never does.
    cluster = await consumer._client.fetch_all_metadata()
    return sorted(cluster.partitions_for_topic(topic) or ())


def _letter(record: ConsumerRecord) -> dict[str, Any]:
    headers = {name: value.decode(errors="replace") for name, value in record.headers if value is not None}
    return {
        "id": headers.get("ce_id", f"{record.topic}/{record.partition}/{record.offset}"),
        "topic": headers.get("placet_topic", ""),
        "partition": _number(headers.get("placet_partition")),
        "offset": _number(headers.get("placet_offset")),
        "at": rfc3339(record.timestamp),
        "key": (record.key or b"").decode(errors="replace"),
        "reason": headers.get("placet_reason", ""),
        "detail": headers.get("placet_detail", ""),
    }


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
