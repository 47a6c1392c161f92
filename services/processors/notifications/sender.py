"""One endpoint's messages, in order: sent, tried again at growing intervals, and finally sent to the dead letters.

A turn is, in this order:

1. messages that ask about closed holds are dropped;
2. if several messages wait, and either only one more fits into this minute, or the first of them has waited for long
   behind one that was not accepted, they become one digest;
3. the try is recorded, and made;
4. accepted messages are deleted; messages that are given up are deleted once their dead letters are in the log.

Only real tries count, and a message's time begins with its own first turn: waiting behind others costs it nothing.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from services.processors.notifications.channel import Undelivered
from services.processors.notifications.config import Endpoint
from services.processors.notifications.meters import UNSEEN, NotifierMeters
from services.processors.notifications.notice import Notice
from services.processors.notifications.outbox import Outbox, Queued
from services.processors.notifications.render import RenderedMessage, digest, digest_id, single
from services.processors.notifications.spans import mark_undelivered, notifying
from vitals import tracing

MINUTE_MS = 60_000
DIGEST_MAX = 500
# After a turn that only cleaned up, the next one follows at once.
AT_ONCE_S = 0.0

logger = logging.getLogger(__name__)
Bury = Callable[[Sequence[Notice], str], Awaitable[None]]


@dataclass(slots=True)
class Sender:
    """Sends the messages that wait for one endpoint; another endpoint's problems do not affect it.

    Attributes:
        bury: writes dead letters with a reason, and returns when they are in the log.
        now_ms: the clock, in ms since the epoch.
        turns: the number of turns, for the watchdog.
        meters: count the outcomes of messages.
    """

    endpoint: Endpoint
    outbox: Outbox
    link_base: str
    bury: Bury
    now_ms: Callable[[], int]
    chance: random.Random = field(default_factory=random.SystemRandom)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    meters: NotifierMeters = UNSEEN
    turns: int = 0
    dropped: int = 0
    wakes_at_ms: int | None = None

    async def run(self, caught_up: asyncio.Event) -> None:
        """Send until cancelled.

        Args:
            caught_up: set while everything in the log has been read; before that, it is unknown which holds are open.

        Raises:
            OutboxUnusable: the outbox cannot be read or written.
        """
        while True:
            self.woken.clear()
            self.wakes_at_ms = self.now_ms()
            wait_s = await self.turn() if caught_up.is_set() else None
            self.turns += 1
            self.wakes_at_ms = None if wait_s is None else self.now_ms() + round(wait_s * 1000)
            await self._wait(wait_s)

    @property
    def is_late(self) -> bool:
        """True if a turn is due, or under way."""
        return self.wakes_at_ms is not None and self.wakes_at_ms <= self.now_ms()

    async def turn(self) -> float | None:
        """Do what is due.

        Returns:
            The seconds until there is more to do; None if nothing waits.
        """
        self._drop_overtaken()
        found = self.outbox.next(self.endpoint.key)
        if not found:
            return None
        now_ms = self.now_ms()
        wait_ms = found[0].due_at_ms - now_ms
        # A message that is due later than is possible was stored before the clock was set back.
        if 0 < wait_ms <= self.endpoint.delivery.within_seconds * 1000:
            return wait_ms / 1000
        free, wait_ms = self._allowance(now_ms)
        if not free:
            return wait_ms / 1000
        if self._is_fresh(found[0]) and (free == 1 or self._has_waited_long(found[0], now_ms)):
            found = self._gather(found)
        await self._try(found, now_ms)
        return AT_ONCE_S

    async def _wait(self, wait_s: float | None) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self.woken.wait()
        except TimeoutError:
            return

    def _drop_overtaken(self) -> None:
        dropped = self.outbox.drop_overtaken(self.endpoint.key)
        if dropped:
            self.dropped += dropped
            self.meters.overtaken.labels(self.endpoint.key).inc(dropped)
            logger.info(
                "%s: %d messages were not sent, their holds are closed (%d since the start)",
                self.endpoint.key,
                dropped,
                self.dropped,
            )

    def _allowance(self, now_ms: int) -> tuple[int, int]:
        """The number of messages that fit into this minute and, if none does, the milliseconds until one will."""
        since_ms = now_ms - MINUTE_MS
        # After a clock was set back, tries in its future do not count.
        made = [at_ms for at_ms in self.outbox.attempts(self.endpoint.key, since_ms + 1) if at_ms <= now_ms]
        free = self.endpoint.delivery.per_minute - len(made)
        return (free, 0) if free > 0 else (0, made[-self.endpoint.delivery.per_minute] - since_ms)

    @staticmethod
    def _is_fresh(queued: Queued) -> bool:
        return not queued.digest and not queued.began_at_ms

    def _has_waited_long(self, queued: Queued, now_ms: int) -> bool:
        """True if it waited at least as long as all tries of another take: sent singly, they might never end."""
        return now_ms >= queued.queued_at_ms + self.endpoint.delivery.within_seconds * 1000 // 2

    def _gather(self, found: list[Queued]) -> list[Queued]:
        fresh = self.outbox.fresh(self.endpoint.key, DIGEST_MAX)
        if len(fresh) < 2:
            return found
        self.outbox.gather(fresh, digest_id(self.endpoint.key, [queued.notice.id for queued in fresh]))
        return self.outbox.next(self.endpoint.key)

    async def _try(self, found: list[Queued], now_ms: int) -> None:
        self.outbox.put_attempt(self.endpoint.key, now_ms, now_ms - MINUTE_MS)
        failure = await self._send_traced(found)
        if failure is None:
            self.outbox.done(found)
            self.meters.taken.labels(self.endpoint.key).inc(len(found))
        else:
            await self._failed(found, failure, now_ms)

    async def _send_traced(self, found: Sequence[Queued]) -> Undelivered | None:
        if tracing.spans is None:
            return await self._send(found)
        notices = [queued.notice for queued in found]
        with notifying(tracing.spans, notices, self.endpoint.key) as span:
            failure = await self._send(found)
            if failure is not None:
                mark_undelivered(span, failure)
            return failure

    async def _send(self, found: Sequence[Queued]) -> Undelivered | None:
        try:
            await self.endpoint.channel.send(self._outgoing(found))
        except Undelivered as error:
            return error
        except (
            Exception
        ) as error:  # one message that cannot be rendered or sent must not keep others from being sent
            # Only the error's name: its text may contain private data.
            return Undelivered(f"an error in the notifier, {type(error).__name__}")
        return None

    def _outgoing(self, found: Sequence[Queued]) -> RenderedMessage:
        if found[0].digest:
            return digest(self.endpoint.key, [queued.notice for queued in found], self.link_base)
        return single(found[0].notice, self.link_base)

    async def _failed(self, found: list[Queued], error: Undelivered, tried_at_ms: int) -> None:
        delivery, now_ms = self.endpoint.delivery, self.now_ms()
        tries, began_at_ms = found[0].tries, found[0].began_at_ms or tried_at_ms
        if error.was_tried:
            self.meters.failed.labels(self.endpoint.key).inc()
            tries += 1
        else:
            self.outbox.drop_attempt(self.endpoint.key, tried_at_ms)
        ends_at_ms = began_at_ms + delivery.within_seconds * 1000
        if error.is_final or tries >= delivery.tries or now_ms >= ends_at_ms:
            await self._give_up(found, tries, error)
            return
        wait_s = back_off_s(max(1, tries), delivery.tries, delivery.within_seconds, self.chance.random())
        due_at_ms = now_ms + round(1000 * max(wait_s, error.retry_after_s or 0.0))
        self.outbox.tried(found, tries, began_at_ms, min(due_at_ms, max(ends_at_ms, now_ms)))
        if error.was_tried:
            logger.info("%s: try %d of %d failed (%s)", self.endpoint.key, tries, delivery.tries, error)
        else:
            logger.info("%s: not tried (%s)", self.endpoint.key, error)

    async def _give_up(self, found: list[Queued], tries: int, error: Undelivered) -> None:
        ended = f"try {tries} was the last one" if tries else "it was never tried"
        why = f"{self.endpoint.key} ({self.endpoint.channel.kind}): {ended} ({error})"
        await self.bury([queued.notice for queued in found], why)
        self.outbox.done(found)
        self.meters.given_up.labels(self.endpoint.key).inc(len(found))
        logger.warning("undeliverable: %s; %d dead letters", why, len(found))


def back_off_s(tries: int, tries_max: int, within_s: float, chance: float) -> float:
    """The time to wait after a try, doubling from one to the next; all waits together stay within the limit.

    Args:
        tries: the number of tries made, from 1 on.
        tries_max: the number of tries in all.
        within_s: the limit of all waits.
        chance: 0 to 1; half of a wait is random, so that many senders do not try at the same time.
    """
    part = (1 << (tries - 1)) / max(1, (1 << (tries_max - 1)) - 1)
    return within_s * part * (0.5 + chance / 2)
