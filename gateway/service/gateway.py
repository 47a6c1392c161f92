"""One gateway: its parts, their start in order, and their stop.

Starting, in this order:
1. Kafka answers, and its topics are those of this installation;
2. the vault is opened;
3. the views return their position and everything that is open there;
4. the tail begins at exactly that position, so that rows and events fit together without a gap;
5. the tail has read what the log contained at that moment;
6. the gateway is ready.

If a database does not answer, the start waits for it, as long as it takes. What the start waits for is the reason in
the status, for `/readyz` and `placet status`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from gateway.asking.timekeeping import keep_time
from gateway.kafka.cluster import check_topics
from gateway.kafka.heartbeats import HeartbeatTail
from gateway.kafka.past import KafkaPast
from gateway.kafka.tail import KafkaTail
from gateway.kafka.trust import TrustTail
from gateway.live.completion import Completion
from gateway.service.assembled import Assembled
from gateway.service.live_state import beginning_of, gate_of, live_of, until_read
from vitals.heartbeat import HEARTBEAT_INTERVAL_S


@dataclass(slots=True, kw_only=True)
class Gateway(Assembled):
    """A gateway: assembled, started, shut down, stopped.

    `examination` finds what keeps it from serving, see `gateway.service.readiness`.
    """

    examination: asyncio.Task[list[str]] | None = None
    _tail: KafkaTail | None = None
    _past: KafkaPast | None = None

    @property
    def tail(self) -> KafkaTail:
        """The tail; errors as `gate`."""
        if self._tail is None:
            raise RuntimeError("the gateway was not started")
        return self._tail

    async def start(self) -> None:
        """Connect, and read to the end of the log.

        Raises:
            LogUnreachable: Kafka does not answer.
            PartitionsDiffer: a topic has another number of partitions than the gateway was configured for.
            LogError: a topic does not exist, or the views' position is outside of the log.
            ViewOutdated: the views are of another version.
            VaultUnavailable: the vault's database refuses the connection.
        """
        settings = self.settings
        self.tasks.on_failure(self.give_up)
        self._waits_for("Kafka has not answered yet")
        await check_topics(self.commands.config, settings.topics, settings.partitions)
        await self.commands.open()
        # Before the databases: while one of them is away, the heartbeats show that Kafka is not.
        self.tasks.spawn(
            HeartbeatTail(self.commands.config, settings.topics.heartbeats, self.heartbeats).run()
        )
        self._waits_for("the vault is being opened: its database has not answered yet")
        await self.vault_access.start()
        self._waits_for("the views are being read: their database has not answered yet")
        live, tail = live_of(self, await beginning_of(self.views, self._waits_for))
        self._waits_for("the log is still being read")
        self.authenticator.people = lambda: live.definitions.people
        self._tail = tail
        await tail.open()
        self._past = KafkaPast(tail.config, [start.tp for start in tail.starts])
        self._gate = gate_of(self, live, tail, self._past)
        ends = await tail.end_offsets()
        self.tasks.spawn(tail.run())
        self.tasks.spawn(self._gate.asker.outbox.run())
        self.tasks.spawn(self._gate.asker.run())
        self.tasks.spawn(self.vault_reconciler.run())
        self.tasks.spawn(Completion(self._gate.reader, self.hub.resync).run())
        topics = settings.topics
        trust = TrustTail(
            self.commands.config, topics.trust, topics.executions, settings.partitions, self.trust
        )
        self.tasks.spawn(trust.run())
        self.tasks.spawn(keep_time(self.asked_for_time, settings.topics.commands, settings.partitions))
        self.tasks.spawn(self._update_status())
        await until_read(live, ends, lambda: self.tasks.failure is not None)
        self.caught_up = self.tasks.failure is None
        self._waits_for("")

    def _waits_for(self, what: str) -> None:
        self.status.reason = what

    def begin_shutdown(self) -> None:
        """Answer long polls with the present state, and end the streams."""
        self.shutdown.begin()
        if self._gate is not None:
            self._gate.live.watch.close()

    def give_up(self) -> None:
        """Answer commands under way as if their time were over."""
        if self._gate is not None:
            self._gate.live.waiters.close()

    async def stop(self) -> None:
        """Answer the requests that still wait, and close every connection."""
        await self.tasks.stop()
        # A process that stops with a reason was ended by an error.
        self._waits_for("")
        self.give_up()
        if self._gate is not None:
            await self._gate.undecided.close()
        if self._tail is not None:
            await self._tail.close()
        await self.vault_access.stop()
        await self.definitions.close()
        await self.commands.close()
        await self.asked_for_time.close()
        await self.audit.records.close()
        if self._past is not None:
            await self._past.close()
        await self.authenticator.close()
        self.tail_views.views.close()
        self.views.views.close()

    async def _update_status(self) -> None:
        while True:
            self.status.progress(*self.tail.progress())
            self.status.clock = self.commands.time.wrong
            await asyncio.sleep(HEARTBEAT_INTERVAL_S / 2)
