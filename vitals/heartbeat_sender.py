"""The heartbeat sender of a process: every second it writes the status file and a heartbeat to the log, in a thread.

The thread makes a busy or hanging event loop visible in the heartbeats instead of stopping them, and keeps this work
off the process's own loop. If the whole process is stopped, its heartbeats stop, and the others report it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from log.kafka.heartbeat_producer import HeartbeatProducer
from log.kafka.settings import client_settings
from schemas.topics import Topics
from vitals.heartbeat import HEARTBEAT_INTERVAL_S, SILENT_AFTER_S, encode
from vitals.process_status import ProcessStatus
from vitals.status_file import write_status

logger = logging.getLogger(__name__)

JOIN_WITHIN_S = 6.0
# Less than the process waits for the thread, whose event loop cannot continue once the interpreter ends.
END_WITHIN_S = 4.0
LAST_HEARTBEAT_WITHIN_S = 0.5


class HeartbeatSender:
    """Sends the heartbeats of one process, from `start` to `stop`."""

    def __init__(
        self, status: ProcessStatus, producer: HeartbeatProducer | None, status_file: Path | None
    ) -> None:
        """Prepare the sender.

        Args:
            status: the process's status.
            producer: sends heartbeats to the log; None for the status file alone.
            status_file: the file; None for the log alone.
        """
        self._status = status
        self._producer = producer
        self._file = status_file
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self.write()
        self._thread.start()

    def stop(self) -> None:
        """Send a last heartbeat and end."""
        self._ended.set()
        self._thread.join(JOIN_WITHIN_S)

    def write(self) -> None:
        """Write the status file now, so that a change does not wait for the next heartbeat."""
        heartbeat = self._status.heartbeat()
        write_status(
            self._file,
            heartbeat.state,
            heartbeat.address,
            probe=heartbeat.probe,
            role=heartbeat.role,
            name=heartbeat.name,
            host=heartbeat.host,
            lag_records=heartbeat.lag_records,
            stalled_ms=heartbeat.stalled_ms,
            loop_age_ms=heartbeat.loop_age_ms,
            kafka_age_ms=heartbeat.kafka_age_ms,
            partitions=list(heartbeat.partitions),
            reason=heartbeat.reason,
            disk=heartbeat.disk,
            clock=heartbeat.clock,
        )

    def _run(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        sending: asyncio.Task[None] | None = None
        while not self._ended.is_set():
            self.write()
            # In a task, because a broker that does not answer must not delay the status file, which reports that.
            if self._producer is not None and (sending is None or sending.done()):
                sending = asyncio.create_task(self._send(self._producer))
            await asyncio.to_thread(self._ended.wait, HEARTBEAT_INTERVAL_S)
        if self._producer is not None:
            try:
                async with asyncio.timeout(END_WITHIN_S):
                    await self._send_last(self._producer, sending)
            except TimeoutError:
                logger.info("the last heartbeat took longer than %g s and was abandoned", END_WITHIN_S)

    async def _send_last(self, producer: HeartbeatProducer, sending: asyncio.Task[None] | None) -> None:
        """Send the last heartbeat, if Kafka has answered recently."""
        if sending is not None:
            await asyncio.wait({sending}, timeout=LAST_HEARTBEAT_WITHIN_S)
            sending.cancel()
        age_ms = self._status.heartbeat().kafka_age_ms
        if age_ms is not None and age_ms < SILENT_AFTER_S * 1000:
            await self._send(producer)
        await producer.close()

    async def _send(self, producer: HeartbeatProducer) -> None:
        heartbeat = self._status.heartbeat()
        if await producer.send(heartbeat.key, encode(heartbeat)):
            self._status.acknowledged()


def heartbeat_sender_of(settings: Mapping[str, str], status: ProcessStatus) -> HeartbeatSender:
    """The heartbeat sender of the process that a role's settings start.

    Raises:
        SettingsRefused: the Kafka settings cannot be used.
    """
    topics = Topics(settings.get("topic_prefix") or "placet")
    security = client_settings(settings.get("kafka_settings"))
    producer = HeartbeatProducer(settings["bootstrap_servers"], security, topics.heartbeats)
    file = settings.get("status_file")
    return HeartbeatSender(status, producer, Path(file) if file else None)
