"""Commands by consumer group: the group assigns partitions, nothing is committed, the log fences writers.

What aiokafka 0.14 does, and what this module does about it:

* A rebalance revokes everything and makes new positions for all partitions, also for those that stay. So the
  listener moves each partition that stays back to the feed's position, and pauses each new one until `start_from`.
  It does so without awaiting, so that no fetch comes in between.
* `getmany` hands out records in its last step, without awaiting after it. So cancelling it loses none, as long as it
  is awaited directly: as a task of its own, it could have ended before a cancelled poll takes its records.
* During a rebalance `getmany` waits without a timeout for the assignment: hence a timeout of our own.
* The sticky assignor keeps its assignment in class attributes, shared by all consumers of a process: hence a class
  for each feed. It is sticky because every partition that moves costs a claim and a fold.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import ConsumerStoppedError, KafkaError, OffsetOutOfRangeError
from aiokafka.structs import ConsumerRecord

from log.errors import LogError, LogUnreachable, MemberReplaced
from log.kafka.client import KafkaSettings, start, stop
from log.kafka.cluster import AskBounds
from log.kafka.follower import offset_gone
from log.kafka.lag import held_back, progress
from log.kafka.member import leave_at_close, watch
from log.kafka.reader import truncated
from log.places import TopicPartition
from schemas.members import instance_id
from schemas.record import RawRecord, raw_record

Fetched = Mapping[KafkaPartition, Sequence[ConsumerRecord]]

# How much longer than its timeout `getmany` may take if no rebalance delays it.
SLACK_S = 0.05


class KafkaFeed:
    """See `CommandFeed`. Make one with `open_feed`."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        settings: KafkaSettings,
        bounds: AskBounds,
        forget: Callable[["KafkaFeed"], None],
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._bounds = bounds
        self._forget = forget
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._next: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._rebalancing = True
        # Whether a poll must return without waiting: the assignment changed, or the feed ended.
        self._changed = False
        self._waiting: asyncio.Timeout | None = None
        self._ended: LogError | None = None

    @property
    def ended(self) -> LogError | None:
        """Why the feed delivers nothing any more, or None."""
        return self._ended

    async def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[RawRecord]]:
        """See `CommandFeed.poll`."""
        if self._ended is not None:
            raise self._ended
        try:
            fetched = await self._fetch(timeout_ms)
            self._changed = False
            return self._take(fetched)
        except OffsetOutOfRangeError as error:
            raise await truncated(offset_gone(error), self._bounds) from error
        except (KafkaError, ConsumerStoppedError) as error:
            # The feed ends here: aiokafka would continue after a corrupt batch, and nothing may be skipped.
            self._ended = self._ended or self._settings.translate(error, consumer=self._consumer)
            raise self._ended from error

    def assignment(self) -> frozenset[TopicPartition]:
        """See `CommandFeed.assignment`."""
        self._next = {tp: offset for tp, offset in self._next.items() if tp in self._assigned}
        self._paused &= self._assigned
        return self._assigned

    def behind(self) -> int:
        """See `CommandFeed.behind`."""
        _, unread = progress(self._consumer, [KafkaPartition(*tp) for tp in self._next])
        return unread

    def held_back(self) -> dict[TopicPartition, int]:
        """See `CommandFeed.held_back`."""
        return {
            TopicPartition(*tp): offset
            for tp, offset in held_back(self._consumer, [KafkaPartition(*tp) for tp in self._next]).items()
        }

    def start_from(self, tp: TopicPartition, offset: int) -> None:
        """See `CommandFeed.start_from`."""
        if tp in self._assigned:
            self._next[tp] = offset
            self._place(tp)

    def pause(self, tp: TopicPartition) -> None:
        """See `CommandFeed.pause`."""
        if tp in self._assigned:
            self._paused.add(tp)
            self._place(tp)

    def resume(self, tp: TopicPartition) -> None:
        """See `CommandFeed.resume`."""
        if tp in self._paused:
            self._paused.discard(tp)
            self._place(tp)

    async def close(self) -> None:
        """See `CommandFeed.close`."""
        self._ended = self._ended or LogUnreachable(self._settings.bootstrap_servers, "the feed is closed")
        self._assigned = frozenset()
        self._forget(self)
        leave_at_close(self._consumer)
        await stop(self._consumer)

    def replaced(self, error: MemberReplaced) -> None:
        """End the feed, since another process joined under this member's name; `poll` raises it."""
        self._ended = self._ended or error
        self._end_wait()

    def revoked(self) -> None:
        """Deliver nothing from the beginning of a rebalance to its end."""
        self._rebalancing = True

    def assigned(self, partitions: Iterable[KafkaPartition]) -> None:
        """At the end of a rebalance, move each partition to where it was, and pause the new ones."""
        before, self._assigned = self._assigned, frozenset(TopicPartition(*tp) for tp in partitions)
        for tp in self._assigned:
            self._place(tp)
        self._rebalancing = False
        if self._assigned != before:
            self._end_wait()

    def _place(self, tp: TopicPartition) -> None:
        partition = KafkaPartition(*tp)
        if partition not in self._consumer.assignment():
            # A rebalance is about to end: `assigned` places everything.
            return
        # A paused partition needs a position too: without one aiokafka looks for a committed offset and fails,
        # because there is none.
        self._consumer.seek(partition, self._next.get(tp, 0))
        if tp in self._next and tp not in self._paused:
            self._consumer.resume(partition)
        else:
            self._consumer.pause(partition)

    def _end_wait(self) -> None:
        self._changed = True
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def _fetch(self, timeout_ms: int) -> Fetched:
        # Records may be there each time: other tasks must run in between.
        await asyncio.sleep(0)
        wait_ms = 0 if self._changed else timeout_ms
        if self._rebalancing and not wait_ms:
            return {}
        try:
            async with asyncio.timeout(wait_ms / 1000 + SLACK_S) as waiting:
                self._waiting = waiting
                fetched: Fetched = await self._consumer.getmany(timeout_ms=wait_ms)
                return fetched
        except TimeoutError:
            # Any other timeout is an error.
            if not waiting.expired():
                raise
            return {}
        finally:
            self._waiting = None

    def _take(self, fetched: Fetched) -> dict[TopicPartition, Sequence[RawRecord]]:
        found: dict[TopicPartition, Sequence[RawRecord]] = {}
        for partition, records in fetched.items():
            tp = TopicPartition(*partition)
            if tp in self._next and records:
                found[tp] = [raw_record(record) for record in records]
                self._next[tp] = records[-1].offset + 1
        return found


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, feed: KafkaFeed) -> None:
        self._feed = feed

    def on_partitions_revoked(self, revoked: Iterable[KafkaPartition]) -> None:
        self._feed.revoked()

    def on_partitions_assigned(self, assigned: Iterable[KafkaPartition]) -> None:
        self._feed.assigned(assigned)


async def open_feed(
    settings: KafkaSettings,
    bounds: AskBounds,
    group: str,
    member: str,
    topics: Sequence[str],
    forget: Callable[[KafkaFeed], None],
) -> KafkaFeed:
    """A member of a group, once the group has assigned it its partitions.

    Args:
        settings: the cluster's address and credentials.
        bounds: reads a partition's bounds.
        group: the group's name.
        member: the member's name: a process that joins under the same name replaces it.
        topics: the topics with the commands; they must exist.
        forget: called when the feed is closed.

    Raises:
        MemberReplaced: another process replaced this one while it joined.
        LogUnreachable: the cluster does not answer.
        LogRefused: the broker does not permit reading.
    """
    assignor = type("FeedAssignor", (StickyPartitionAssignor,), {})
    instance = instance_id(member, topics)
    consumer = settings.group_consumer(group, instance, assignor)
    feed = KafkaFeed(consumer, settings, bounds, forget)
    watch(consumer, instance, lambda: feed.replaced(MemberReplaced(group, member)))
    consumer.subscribe(topics, listener=_Listener(feed))
    try:
        await start(consumer, settings)
    except LogUnreachable as error:
        raise feed.ended or error from error
    return feed
