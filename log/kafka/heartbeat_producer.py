"""Sends heartbeats to the log, the one place where every machine of an installation can read those of the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

logger = logging.getLogger(__name__)

# A frozen broker does not answer: the connection is closed, so that a new one notices when the broker is back.
ANSWER_WITHIN_S = 3.0
CLOSE_WITHIN_S = 1.0
PARTITION = 0


def is_cancelled() -> bool:
    """Returns True if the running task was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class HeartbeatProducer:
    """Sends heartbeats to a topic, one at a time; a producer that failed is replaced."""

    def __init__(self, bootstrap_servers: str, security: Mapping[str, Any], topic: str) -> None:
        self._servers = bootstrap_servers
        self._security = security
        self._topic = topic
        self._producer: AIOKafkaProducer | None = None
        self._failing = False

    async def send(self, key: str, value: bytes) -> bool:
        """Send one heartbeat.

        Returns:
            True if Kafka has acknowledged it.
        """
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                producer = await self._connected()
                await producer.send_and_wait(self._topic, value, key.encode(), PARTITION)
        except (KafkaError, OSError, TimeoutError) as error:
            # Warned once: the next heartbeats would repeat the warning every second.
            level = logging.DEBUG if self._failing else logging.WARNING
            logger.log(level, "no heartbeat reached %s (%s)", self._topic, type(error).__name__)
            self._failing = True
            await self.close()
            return False
        self._failing = False
        return True

    async def close(self) -> None:
        """Close the connection within about a second."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await producer.stop()
        except (asyncio.CancelledError, KafkaError, OSError, TimeoutError) as error:
            # aiokafka awaits tasks that it cancelled itself, so a CancelledError may not be meant for this task.
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            logger.debug("the heartbeats' client did not stop by itself (%s)", type(error).__name__)
        finally:
            await producer.client.close()

    async def _connected(self) -> AIOKafkaProducer:
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                bootstrap_servers=self._servers,
                acks=1,
                linger_ms=0,
                request_timeout_ms=int(ANSWER_WITHIN_S * 1000),
                **self._security,
            )
            await self._producer.start()
        return self._producer
