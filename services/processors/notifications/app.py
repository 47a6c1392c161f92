"""The faust application of the notifier: one agent on the facts, no table; its state is the outbox."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import faust
from faust.types import TP

from services.processors.app import (
    ROUND_MAX_RECORDS,
    IdempotentProducer,
    faust_app,
    raw_topic,
    seeking_consumer,
)
from services.processors.notifications.config import Notifications
from services.processors.notifications.dead_letters import DeadLetters
from services.processors.notifications.outbox import Outbox
from services.processors.notifications.processor import Notifier
from services.processors.notifications.sender import Sender
from services.processors.notifications.settings import NotifierSettings
from services.processors.trust import Source
from services.processors.watchdog import Lease

ROUND_WITHIN_S = 0.1


def build(
    settings: NotifierSettings, topic_id: str, notifications: Notifications, outbox: Outbox
) -> tuple[faust.App, Notifier, Lease]:
    """The notifier, ready to be run by a worker.

    Args:
        settings: the process's settings.
        topic_id: the id of the topic of the facts.
        notifications: the notifications and their targets.
        outbox: the notifier's state.
    """
    app = faust_app(settings)
    lease = Lease(settings.session_timeout_s)
    notifier = Notifier(app, Source(settings.topics, topic_id, settings.signatures), outbox, lease)
    dead_letters = DeadLetters(app, settings.topics, settings.partitions)
    senders = [
        Sender(endpoint, outbox, notifications.link_base, dead_letters.write, _now_ms)
        for endpoint in notifications.endpoints
    ]
    notifier.serve(senders, _now_ms)
    transport: Any = app.transport
    transport.Producer = IdempotentProducer
    transport.Consumer = seeking_consumer(notifier.positions)
    _connect(app, notifier, senders, raw_topic(app, settings.topics.executions))
    return app, notifier, lease


def _connect(app: faust.App, notifier: Notifier, senders: Sequence[Sender], facts: Any) -> None:
    async def take_up(*_: Any, **__: Any) -> None:
        try:
            await notifier.load(lambda tps: _bookmarks(app, tps))
        except Exception as error:  # faust would continue without any partition loaded
            await app.crash(error)

    # Sent when the partitions are known, and before faust seeks and reads them.
    app.on_rebalance_complete.connect(take_up)

    async def send_messages() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for sender in senders:
                    group.create_task(sender.run(notifier.caught_up))
        except* Exception as errors:
            await app.crash(errors.exceptions[0])

    app.task(send_messages)

    @app.agent(facts, name="notifier", concurrency=1)
    async def tell(stream: Any) -> None:
        async for events in stream.noack_take(ROUND_MAX_RECORDS, within=ROUND_WITHIN_S):
            for event in await notifier.fold(events):
                await stream.ack(event)


async def _bookmarks(app: Any, tps: Sequence[TP]) -> Mapping[TP, int | None]:
    """The group's offsets, read from the broker."""
    thread = app.consumer._thread
    return {tp: await thread.call_thread(thread._ensure_consumer().committed, tp) for tp in tps}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
