"""Time queries to the broker, so that a gateway knows the log's time even while it has nothing to append."""

from __future__ import annotations

import asyncio
import logging
from itertools import cycle

from gateway.asking.outbox import CommandLog
from log.errors import AppendFailed
from schemas.time_question import time_question

logger = logging.getLogger(__name__)

ASK_EVERY_S = 5.0
ASK_AGAIN_S = 1.0


async def keep_time(log: CommandLog, topic: str, partitions: int) -> None:
    """Query the partitions of the commands one after the other, until cancelled.

    Args:
        log: gets the time from its appends. It must not be shared: if one partition does not answer, its connection
            is closed, with everything under way on it.
        topic: the commands' topic.
        partitions: their count.
    """
    for partition in cycle(range(partitions)):
        try:
            await log.append(topic, partition, [time_question(partition, partitions)])
        except AppendFailed as error:
            logger.info("the time could not be read from %s/%d: %s", topic, partition, error)
            await asyncio.sleep(ASK_AGAIN_S)
        else:
            await asyncio.sleep(ASK_EVERY_S)
