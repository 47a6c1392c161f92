"""The nemesis: what befalls deciders, the broker's clock, snapshots and commands, at drawn moments."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from log.memory.log import MemoryLog
from log.places import TopicPartition
from schemas.record import OutRecord
from tests.simulation.workers import SESSION_S, Machine

CLOCK_STEP_MS = 3 * 3_600_000


@dataclass
class Broker:
    """The broker's clock: simulated time, moved by what an operator or a new leader does to it."""

    start_ms: int
    moved_ms: int = 0

    def now_ms(self) -> int:
        return self.true_ms() + self.moved_ms

    def true_ms(self) -> int:
        """What the machines' clocks say, more or less."""
        return self.start_ms + int(asyncio.get_running_loop().time() * 1000)

    def move(self, by_ms: int) -> None:
        self.moved_ms = by_ms


@dataclass
class Nemesis:
    """Does harm until it is told to stop, and then mends what it can."""

    log: MemoryLog
    machines: list[Machine]
    broker: Broker
    rng: random.Random
    happened: Counter[str] = field(default_factory=Counter)

    async def run(self, for_s: float) -> None:
        """Do harm for a while."""
        harms: list[Callable[[], None]] = [
            self._pause,
            self._pause,
            self._kill,
            self._stop,
            self._start,
            self._usurp,
            self._spoil_snapshot,
            self._repeat_command,
            self._repeat_command,
            self._move_clock,
        ]
        ends_at_s = asyncio.get_running_loop().time() + for_s
        while (now_s := asyncio.get_running_loop().time()) < ends_at_s:
            await asyncio.sleep(min(self.rng.expovariate(1 / 4.0), ends_at_s - now_s + 0.001))
            self.rng.choice(harms)()

    def mend(self) -> None:
        """No more harm: whoever is paused goes on, everybody runs who should, and each under a name of its own."""
        for machine in self.machines:
            machine.member = machine.name
            machine.resume()
            machine.start()

    def _machine(self) -> Machine:
        return self.rng.choice(self.machines)

    def _pause(self) -> None:
        machine = self._machine()
        machine.pause()
        asyncio.get_running_loop().call_later(self.rng.choice((0.5, 8.0, 20.0)), machine.resume)

    def _usurp(self) -> None:
        """Let a decider sleep while others take over what it writes, and wake up when they are gone again."""
        sleeper = self._machine()
        later = asyncio.get_running_loop().call_later
        sleeper.pause()
        for other in self.machines:
            if other is not sleeper:
                other.start()
                later(SESSION_S + self.rng.uniform(1.0, 3.0), other.stop)
                later(self.rng.uniform(20.0, 40.0), other.start)
        later(SESSION_S + self.rng.uniform(2.0, 4.0), sleeper.resume)
        self.happened["usurped"] += 1

    def _kill(self) -> None:
        machine = self._machine()
        machine.kill()
        asyncio.get_running_loop().call_later(self.rng.uniform(0.1, 15.0), machine.start)

    def _stop(self) -> None:
        machine = self._machine()
        machine.stop()
        self.happened["stopped"] += 1
        asyncio.get_running_loop().call_later(self.rng.uniform(0.1, 15.0), machine.start)

    def _start(self) -> None:
        self._machine().start()

    def _move_clock(self) -> None:
        self.broker.move(self.rng.choice((-CLOCK_STEP_MS, -5_000, -500, 500, 5_000, CLOCK_STEP_MS)))
        asyncio.get_running_loop().call_later(self.rng.uniform(1.0, 12.0), self.broker.move, 0)
        self.happened["clock_moved"] += 1

    def _spoil_snapshot(self) -> None:
        """Lose all snapshots of a partition, or leave one that is not what it says."""
        count = len(self.log._topic(self.log.topics.snapshots).partitions)
        tp = TopicPartition(self.log.topics.snapshots, self.rng.randrange(count))
        partition = self.log.partition(tp)
        records = partition.slice(partition.first, partition.end)
        if not records:
            return
        self.happened["snapshot_spoiled"] += 1
        if self.rng.random() < 0.5:
            partition.delete_before(partition.end)
            return
        record = self.rng.choice(records)
        self.log.land(tp, [OutRecord(record.key, record.value[:-1] + b"?" if record.value else b"?", ())])

    def _repeat_command(self) -> None:
        """Let a command that was sent long ago arrive once more."""
        topic = self.log.topics.commands
        tp = TopicPartition(topic, self.rng.randrange(len(self.log._topic(topic).partitions)))
        partition = self.log.partition(tp)
        if records := partition.slice(partition.first, partition.end):
            record = self.rng.choice(records)
            self.log.land(tp, [OutRecord(record.key, record.value, record.headers)])
            self.happened["command_repeated"] += 1
