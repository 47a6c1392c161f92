"""The faust application: one agent on the facts, and one table that faust recovers from `placet.trust`."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode import CrashingSupervisor

from log.kafka.closed_transport import handle_closed_transports
from log.kafka.settings import client_settings
from schemas.topics import MAX_MESSAGE_BYTES
from services.processors.eager_coroutines import start_eagerly
from services.processors.settings import ProcessorSettings, credentials
from services.processors.trust import Source, TrustProcessor
from services.processors.watchdog import Lease

ROUND_MAX_RECORDS = 2000
ROUND_WITHIN_S = 0.5
# Trust is read by the next decisions, and nobody waits for it: facts are fetched in batches of a quarter of a second.
# Fetched one by one, as faust would do, they take a third of a busy machine from processes that users wait for.
FETCH_MIN_BYTES = 256 * 1024
FETCH_WITHIN_MS = 250

handle_closed_transports()

# Returns the records of a partition that are kept.
DropUnused = Callable[[TP, list[Any]], list[Any]]


class IdempotentProducer(driver.Producer):
    """Faust's producer with acks of all replicas and idempotence, which faust itself sets only for transactions."""

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}


class TunedConsumerThread(driver.AIOKafkaConsumerThread):
    """Faust's consumer thread, with settings that faust lacks: for the wait of a fetch and for faust's own alarms."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # aiokafka's consumer reads these when it starts.
        consumer._fetch_min_bytes = FETCH_MIN_BYTES
        consumer._fetch_max_wait_ms = FETCH_WITHIN_MS
        return consumer

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing: `watchdog` detects stalls.

        Faust expects each partition to be processed all the time. Those of the table's own topic are read only during
        a recovery, and a partition without new records for five minutes is no fault: faust kept logging both.
        """


def seeking_consumer(positions: Callable[[], Mapping[TP, int]]) -> type[driver.Consumer]:
    """Faust's consumer, with read positions given by the folds.

    Faust seeks to the group's offsets after each recovery and whenever it loses its position. Those offsets may be
    ahead of what was processed. If one is 0 or missing, faust does not seek, although its fetcher has dropped records
    meanwhile: while all partitions are paused, it gets those of every partition. These include the table's own topic:
    a fetch that began before a rebalance may bring its records after the recovery has set the consumer's position and
    before it resumes the flow. Unless the consumer seeks back, the recovery waits for ever.

    After a recovery faust resumes the partitions of the facts before it seeks, and its fetcher may then deliver what
    follows the group's offset. Records of a partition that was not sought since its assignment are dropped: they are
    fetched again from the position that the seek sets.
    """

    class SeekingConsumer(driver.Consumer):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._sought: set[TP] = set()

        async def on_partitions_revoked(self, revoked: set[TP]) -> None:
            self._sought -= revoked
            await super().on_partitions_revoked(revoked)

        async def _getmany(self, *asked: Any, **bounds: Any) -> Any:
            found = await super()._getmany(*asked, **bounds)
            return {tp: records for tp, records in found.items() if self._is_in_place(tp)} if found else found

        def _is_in_place(self, tp: TP) -> bool:
            return tp in self._sought or self._is_changelog_tp(tp)

        def _new_consumer_thread(self) -> TunedConsumerThread:
            return TunedConsumerThread(self, loop=self.loop, beacon=self.beacon)

        async def wait_first(self, *waited: Any, **bounds: Any) -> Any:
            """Deliver a message without four tasks for it, if nothing has to be waited for.

            Faust calls this with the delivery of each message, and with the wait for the flow's suspension, which
            matters only to a delivery that waits.
            """
            if len(waited) != 2 or not all(map(asyncio.iscoroutine, waited)):
                return await super().wait_first(*waited, **bounds)
            handing, suspension = waited
            if (begun := start_eagerly(handing)) is not None:
                return await super().wait_first(begun, suspension, **bounds)
            suspension.close()
            return None

        async def seek_to_committed(self) -> Mapping[TP, int]:
            assigned = self.assignment()
            starts = {tp: offset for tp, offset in positions().items() if tp in assigned}
            await self.seek_wait({**starts, **_being_recovered(self.app.tables, assigned)})
            self._sought |= starts.keys()
            return starts

    return SeekingConsumer


def filtering_consumer(
    positions: Callable[[], Mapping[TP, int]], drop_unused: DropUnused
) -> type[driver.Consumer]:
    """The seeking consumer, which makes no message for the records that `drop_unused` leaves out.

    Faust treats dropped records as a gap: it would keep each one in a tree of intervals, and fill it with every
    offset at each commit. One agent takes the messages in order and acknowledges them in order, so the offset to
    commit is the one after the newest that was acknowledged.
    """

    class ThinnedConsumer(seeking_consumer(positions)):  # type: ignore[misc]
        async def _getmany(self, *asked: Any, **bounds: Any) -> Any:
            found = await super()._getmany(*asked, **bounds)
            return {tp: drop_unused(tp, records) for tp, records in found.items()} if found else found

        async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
            """Keep no gap."""

        def _new_offset(self, tp: TP) -> int | None:
            acked = self._acked[tp]
            if not acked:
                return None
            newest = max(acked)
            acked.clear()
            self._acked_index[tp].clear()
            return int(newest) + 1

    return ThinnedConsumer


def _being_recovered(tables: Any, assigned: set[TP]) -> dict[TP, int]:
    """The position of a recovery in each partition of the table's topic; a record read twice changes nothing.

    A partition whose position faust has not looked up yet is omitted: the recovery seeks there afterwards.
    """
    seen: dict[TP, int | None] = {**tables.recovery.standby_offsets, **tables.recovery.active_offsets}
    return {tp: max(0, offset) for tp, offset in seen.items() if offset is not None and tp in assigned}


@dataclass(frozen=True)
class TrustApp:
    """The application with its processor and lease."""

    app: faust.App
    processor: TrustProcessor
    lease: Lease


def faust_app(settings: ProcessorSettings) -> faust.App:
    """A faust application that creates no topic, serves no web page and crashes on errors."""
    brokers = settings.bootstrap_servers.split(",")
    return faust.App(
        settings.group,
        broker=";".join(f"kafka://{address.strip()}" for address in brokers),
        broker_credentials=credentials(client_settings(settings.kafka_settings)),
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=settings.session_timeout_s / 4,
        broker_commit_interval=1.0,
        # "none" would end the very first start, which has no offset yet. If "earliest" skips or repeats records, the
        # fold and `TrustProcessor` detect it.
        consumer_auto_offset_reset="earliest",
        # A restarted process takes its own place at once, and waits for no session to end.
        consumer_group_instance_id=settings.instance_id,
        agent_supervisor=CrashingSupervisor,
        # Faust formats this string: a brace is written twice.
        datadir=str(settings.data_dir / settings.role).replace("{", "{{").replace("}", "}}"),
        # As the topics allow it: a part of trust, or an outbox, is one record.
        producer_max_request_size=MAX_MESSAGE_BYTES,
        processing_guarantee="at_least_once",
        store="memory://",
        stream_buffer_maxsize=2 * ROUND_MAX_RECORDS,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=settings.partitions,
        web_enabled=False,
    )


def build(settings: ProcessorSettings, topic_id: str) -> TrustApp:
    """The processor, ready to be run by a worker.

    Args:
        settings: the process's settings.
        topic_id: the id of the topic of the facts.
    """
    app = faust_app(settings)
    lease = Lease(settings.session_timeout_s)
    table = app.Table(
        "trust",
        key_type=bytes,
        value_type=bytes,
        partitions=settings.partitions,
        changelog_topic=raw_topic(app, settings.topics.trust),
    )
    source = Source(settings.topics, topic_id, settings.signatures)
    processor = TrustProcessor(app, source, table, lease)
    table.on_recover(processor.load)
    transport: Any = app.transport
    transport.Producer = IdempotentProducer
    transport.Consumer = filtering_consumer(processor.positions, processor.drop_unused)
    facts = raw_topic(app, settings.topics.executions)

    @app.agent(facts, name="trust", concurrency=1)
    async def count_trust(stream: Any) -> None:
        async for events in stream.noack_take(ROUND_MAX_RECORDS, within=ROUND_WITHIN_S):
            for event in await processor.fold(events):
                await stream.ack(event)

    return TrustApp(app, processor, lease)


def raw_topic(app: faust.App, name: str) -> Any:
    """A topic of plain bytes: faust acknowledges and drops messages that it cannot decode itself."""
    return app.topic(
        name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw", allow_empty=True
    )
