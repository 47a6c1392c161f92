"""The single writer of one partition: claims it, recovers it, and decides commands in atomic rounds.

The steps, in the order that makes them safe:

1.–3. Claim (see `claim.py`): read to the end, append a claim, read back to it.
4. Adopt the definitions as of their high watermark.
5. Serve, while the clocks agree (see `log_time.py`), round by round: dead letters first, then one batch. Continue
   only if the batch was acknowledged exactly where the last one ended: anything else means that another process may
   be writing.
6. Carry to other partitions what acknowledged batches ask for (see `command_forwarder.py`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from log.places import TopicPartition
from log.port import Appender, Log
from schemas.event_signatures import EventSigner
from schemas.events.log import DefinitionsAdopted
from schemas.record import OutRecord, RawRecord
from schemas.term import NO_CLAIM
from services.runtime.claim import claim
from services.runtime.command_forwarder import CommandForwarder
from services.runtime.dead_letters import send_dead_letters
from services.runtime.deadlines import Deadlines
from services.runtime.ledger import Ledger
from services.runtime.log_time import LogTime
from services.runtime.meters import UNSEEN, Meters
from services.runtime.rounds import BURY_AFTER_DEATHS, Round, Rounds
from services.runtime.spans import record_decisions
from services.runtime.trial import Trial
from vitals import tracing

ALIVE_EVERY_S = 60.0
ALIVE_EVERY_RECORDS = 1_000
# One idle claim is this writer's own; a second one means that an earlier writer ended without any progress.
CAREFUL_AFTER_CLAIMS = 2
CAREFUL_COMMANDS = 100
INBOX_HIGH = 5_000
NUDGE_EVERY_S = 1.0
# The pause between two trials of a command: a machine without memory for the first may have some for the next.
TRIAL_PAUSE_S = 0.25

logger = logging.getLogger(__name__)


class Deposed(Exception):
    """Another writer may hold the partition: step down, read the log, and claim again if it is still assigned."""


class Adoption(Protocol):
    """The source of a writer's new definitions."""

    def pending(self, adopted_through: int) -> DefinitionsAdopted | None:
        """The definitions to adopt, or None if the partition is up to date."""
        ...

    def put_in_force(self) -> None:
        """Use the definitions that `pending` named from now on."""
        ...

    async def catch_up(self) -> None:
        """Read the definitions to their high watermark."""
        ...


class Snapshotting(Protocol):
    """The snapshots that make a writer's start, and the next one's, faster."""

    async def restore(self) -> None:
        """Begin from the newest usable snapshot, if there is one."""
        ...

    async def save_if_worthwhile(self, snapshot_id: str) -> None:
        """Write a snapshot of the ledger that was just read back."""
        ...


@dataclass(slots=True)
class PartitionWriter:
    """Writes one events partition from one commands partition, under one term at a time.

    Attributes:
        time: the view of the log's time; while it is wrong, nothing is decided.
        log: the log of both partitions.
        commands_tp, events_tp: the pair.
        worker_id: this process's unique name, used in the claim.
        rounds: decides commands; holds the ledger.
        adoption: the definitions, or None if none are needed.
        died_of: by offset, how often earlier writers of this process died of a command that they tried alone.
        alone: held while a command is tried alone, for all partitions of a process; otherwise a command that kills
            the process would leave other commands that look as if they had killed it.
        trial: tries a command that may have ended earlier processes, before this process does.
        start_commands: requests the partition's commands from an offset on from the feed.
        event_signer: signs what is appended, for the offset where it must land; None if nothing is signed.
        counted: a claim that others have counted; a writer that does not count it is refused (`log/completeness.py`).
        recovering: held while records are read; shared, so that partitions recover one after the other, the first of
            them soon, instead of all at the end.
    """

    log: Log
    appender: Appender
    commands_tp: TopicPartition
    events_tp: TopicPartition
    worker_id: str
    rounds: Rounds
    adoption: Adoption | None
    start_commands: Callable[[int], None]
    fresh_id: Callable[[], str]
    time: LogTime
    deadlines: Deadlines | None = None
    snapshots: Snapshotting | None = None
    forwarder: CommandForwarder | None = None
    event_signer: EventSigner | None = None
    trial: Trial | None = None
    died_of: Mapping[int, int] = field(default_factory=dict)
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    counted: int = NO_CLAIM
    recovering: asyncio.Semaphore = field(default_factory=asyncio.Semaphore)
    meters: Meters = UNSEEN
    stopping: bool = False
    serving: bool = False
    _inbox: deque[RawRecord] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _records_since_alive: int = 0
    _alive_at_s: float = 0.0
    _nudged_at_s: float = 0.0
    _careful: int = 0
    _suspect_before: int = 0
    _taken: int = -1
    _own_nudges: set[int] = field(default_factory=set)

    @property
    def ledger(self) -> Ledger:
        """The partition's fold."""
        return self.rounds.ledger

    @property
    def progress(self) -> tuple[int, int]:
        """Its progress: the last command that was taken, and the number that wait here.

        Before it serves: how far it has read the events, and the number that is left to read of those.
        """
        if not self.serving:
            ledger = self.ledger
            return ledger.next_offset, max(0, ledger.reading_to - ledger.next_offset)
        return self._taken, len(self._inbox)

    @property
    def crowded(self) -> bool:
        """True if too many commands wait; then the feed pauses the partition."""
        return len(self._inbox) > INBOX_HIGH

    def offer(self, raws: Sequence[RawRecord]) -> None:
        """Add commands in offset order.

        Until this writer has requested commands from an offset, they are those of an earlier writer's request: if
        they were taken out of order, the commands before them would be skipped.
        """
        if self.serving:
            self._inbox.extend(raws)
            self._wake.set()

    def wake(self) -> None:
        """Check for new definitions."""
        self._wake.set()

    def stop(self) -> None:
        """Finish the round under way and return from `run`."""
        self.stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Claim, recover and serve until stopped.

        Raises:
            Deposed: the claim was lost, or a batch landed elsewhere than expected.
            LogError: the log failed; see its kinds.
        """
        async with self.recovering:
            # The partition may have been reassigned while others recovered: claim nothing then.
            if self.stopping:
                return
            with self.meters.recovering():
                await self._recover()
        with self.meters.writing(*self.events_tp, self.ledger.rule.claim):
            await self._write()

    async def _write(self) -> None:
        """Serve until stopped."""
        if self.ledger.idle_claims >= CAREFUL_AFTER_CLAIMS or self.ledger.attempting >= 0:
            self._careful = CAREFUL_COMMANDS
            # A command that ended an earlier writer was in the log before this one claimed.
            _, self._suspect_before = await self.log.bounds(self.commands_tp)
        self._alive_at_s = _loop_time_s()
        if self.forwarder is not None:
            self.forwarder.start()
        if self.deadlines is not None:
            self.deadlines.start()
        await self._round(iter(()))
        self.start_commands(self.ledger.commands_through + 1)
        self.serving = True
        logger.info("writing %s under term %d", self.events_tp, self.ledger.rule.claim)
        while not self.stopping:
            await self._wait()
            await self._serve()

    async def _recover(self) -> None:
        if self.snapshots is not None:
            await self.snapshots.restore()
        claim_id = self.fresh_id()
        name, pen = self.worker_id, self.event_signer
        won = await claim(
            self.log, self.appender, self.events_tp, self.ledger, claim_id, name, pen, self.counted
        )
        if not won:
            raise Deposed(f"another worker claimed {self.events_tp} first")
        if self.snapshots is not None:
            await self.snapshots.save_if_worthwhile(claim_id)
        if self.adoption is not None:
            await self.adoption.catch_up()

    async def _wait(self) -> None:
        if (self._inbox and not self.time.wrong) or self.stopping:
            return
        timeout_s = min(ALIVE_EVERY_S, self.time.wait_s())
        if self.deadlines is not None and not self.time.wrong:
            timeout_s = min(timeout_s, self.deadlines.wait_ms() / 1000)
        if self.forwarder is not None and not self.time.wrong:
            timeout_s = min(timeout_s, self.forwarder.wait_ms() / 1000)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        self._wake.clear()

    async def _serve(self) -> None:
        await self.time.settle(self._inbox, self.ledger.now_ms)
        if self.time.wrong:
            return
        # Under load there is always a command to decide: deadlines must get their turn too.
        now_s = _loop_time_s()
        if self.deadlines is not None and (not self._inbox or now_s - self._nudged_at_s >= NUDGE_EVERY_S):
            self._nudged_at_s = now_s
            await self.deadlines.nudge_due(self._send_nudge)
        if self._careful and self._inbox and self._inbox[0].offset < self._suspect_before:
            await self._carefully()
        else:
            await self._round(self._drain())
        if self.forwarder is not None:
            # Every batch of this turn was acknowledged, so its effects can be carried to other partitions.
            await self.forwarder.forward(self.ledger.rule.claim)

    async def _send_nudge(self, record: OutRecord) -> int:
        offset = await self.log.send(self.commands_tp, record)
        self._own_nudges.add(offset)
        return offset

    def _drain(self) -> Iterator[RawRecord]:
        while (raw := self._take()) is not None:
            yield raw

    def _take(self) -> RawRecord | None:
        """The next command, with the time at which it counts as appended; None while that is in doubt."""
        if not self._inbox:
            return None
        at_ms = self.time.of(self._inbox[0], self.ledger.now_ms)
        if at_ms is None:
            return None
        raw = self._inbox.popleft()
        self.time.taken(raw)
        self._taken = raw.offset
        # Only a nudge that was just sent gives the exact time: an earlier writer's may be old.
        own = raw.offset in self._own_nudges
        self._own_nudges.discard(raw.offset)
        self.time.clock.observe(at_ms, exact=own and at_ms == raw.timestamp_ms)
        return raw._replace(timestamp_ms=at_ms)

    async def _carefully(self) -> None:
        """Decide one command alone, after recording that it is tried; a command that ended others is given up.

        Those are processes that tried it alone according to the log, and this process's writers that died of it.
        """
        raw = self._take()
        if raw is None or raw.offset <= self.ledger.commands_through:
            return
        async with self.alone:
            deaths = self.ledger.deaths_at(raw.offset, self.worker_id) + self.died_of.get(raw.offset, 0)
            round_ = self._begin()
            self.rounds.alive(round_, raw.offset - 1, attempting=raw.offset)
            await self._append(round_)
            round_ = self._begin()
            trials = await self._deadly_trials(round_, raw, deaths)
            await self.ledger.offload(partial(self.rounds.decide_alone, round_, raw, deaths + trials, trials))
            await self._finish(round_)
            await self._say_alive(raw.offset)
        self._careful -= 1

    async def _deadly_trials(self, round_: Round, raw: RawRecord, earlier: int) -> int:
        """The number of children that a command ends, one after the other, until one survives it.

        The round that a child fills is its own copy.
        """
        trials = 0
        while self.trial is not None and (deaths := earlier + trials) < BURY_AFTER_DEATHS:
            if await self.trial.survives(partial(self.rounds.decide_alone, round_, raw, deaths, trials)):
                break
            trials += 1
            logger.error(
                "%d writers or processes ended while deciding the command at %s/%d",
                deaths + 1,
                self.commands_tp,
                raw.offset,
            )
            await asyncio.sleep(TRIAL_PAUSE_S)
        return trials

    async def _round(self, raws: Iterator[RawRecord]) -> None:
        round_ = self._begin()
        await self.ledger.offload(partial(self.rounds.decide, round_, raws))
        await self._finish(round_)

    async def _finish(self, round_: Round) -> None:
        if round_.dead_letters:
            await send_dead_letters(self.log, self.commands_tp, round_.dead_letters)
        self._maybe_alive(round_)
        await self._append(round_)
        self._hand_on(round_)
        self.meters.decided(round_.commands, len(round_.records), len(round_.dead_letters))

    def _hand_on(self, round_: Round) -> None:
        """Pass an acknowledged batch's deadlines and effects to the objects that handle them."""
        if self.deadlines is not None:
            self.deadlines.look(round_.touched)
        if self.forwarder is not None and round_.effects:
            self.forwarder.take(round_.effects)
        if round_.traced and tracing.spans is not None:
            record_decisions(tracing.spans, self.commands_tp.topic, round_.traced)

    def _begin(self) -> Round:
        round_ = self.rounds.begin()
        adopted = self.adoption.pending(self.ledger.adopted_through) if self.adoption else None
        if adopted is not None and self.adoption is not None:
            self.adoption.put_in_force()
            self.rounds.adopt(round_, adopted)
        return round_

    def _maybe_alive(self, round_: Round) -> None:
        self._records_since_alive += round_.commands
        overdue = _loop_time_s() - self._alive_at_s >= ALIVE_EVERY_S
        silent = round_.through > self.ledger.commands_through
        if self._records_since_alive >= ALIVE_EVERY_RECORDS or overdue or (silent and round_.dead_letters):
            self.rounds.alive(round_, max(round_.through, self.ledger.commands_through))
            self._records_since_alive = 0
            self._alive_at_s = _loop_time_s()

    async def _say_alive(self, commands_through: int) -> None:
        if self.ledger.commands_through < commands_through:
            round_ = self._begin()
            self.rounds.alive(round_, commands_through)
            await self._append(round_)

    async def _append(self, round_: Round) -> None:
        if not round_.records:
            return
        records = round_.records
        if self.event_signer is not None:
            records = self.event_signer.sign(*self.events_tp, round_.base, records)
        with self.meters.appending():
            base = await self.appender.append(self.events_tp, records)
        if base != round_.base:
            raise Deposed(f"a batch for {self.events_tp} landed at {base} instead of {round_.base}")


def _loop_time_s() -> float:
    return asyncio.get_running_loop().time()
