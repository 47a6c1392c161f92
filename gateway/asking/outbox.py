"""Outgoing commands: those that arrive together share one signature and one append."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from log.errors import AppendFailed
from schemas.envelope import Draft, Signer
from schemas.record import OutRecord
from schemas.topics import partition_of

logger = logging.getLogger(__name__)

# A signature's proof, and so every record, grows with the logarithm of the number of commands that share it.
SIGNED_TOGETHER_MAX = 256
# Under load, a moment's wait lets more commands share a signature, a batch, a request, and all the work that the
# decider and the broker do for each of those. A single command does not wait.
BUSY_FROM = 8
GATHER_S = 0.002

Left = Callable[[], None]
Failed = Callable[[str], None]


class CommandLog(Protocol):
    """The log that commands are appended to."""

    async def append(self, topic: str, partition: int, records: Sequence[OutRecord]) -> None:
        """Append in order; returns when they are durable.

        Raises:
            AppendFailed: the outcome is unknown.
        """
        ...


class QueuedCommand(NamedTuple):
    """A command to be sent; `left` is called when it is in the log, `failed` when it may not be."""

    draft: Draft
    topic: str
    partitions: int
    left: Left
    failed: Failed


@dataclass(slots=True)
class Outbox:
    """Sends the commands that are put into it, in order for each partition."""

    signer: Signer
    log: CommandLog
    _waiting: list[QueuedCommand] = field(default_factory=list, init=False)
    _wanted: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def put(self, outgoing: QueuedCommand) -> None:
        """Queue a command; it is sent with all others that arrive before the next append."""
        self._waiting.append(outgoing)
        self._wanted.set()

    async def run(self) -> None:
        """Send until cancelled."""
        is_busy = False
        while True:
            await self._wanted.wait()
            # At least one turn of the loop, so that commands that have already arrived at other sockets are included.
            await asyncio.sleep(GATHER_S if is_busy else 0)
            round_, self._waiting = self._waiting[:SIGNED_TOGETHER_MAX], self._waiting[SIGNED_TOGETHER_MAX:]
            if not self._waiting:
                self._wanted.clear()
            is_busy = len(round_) >= BUSY_FROM
            await self._send(round_)

    async def _send(self, round_: Sequence[QueuedCommand]) -> None:
        records = self.signer.sign([outgoing.draft for outgoing in round_])
        parts: dict[tuple[str, int], list[tuple[QueuedCommand, OutRecord]]] = defaultdict(list)
        for outgoing, record in zip(round_, records, strict=True):
            parts[outgoing.topic, partition_of(record.key, outgoing.partitions)].append((outgoing, record))
        await asyncio.gather(*(self._append(*where, part) for where, part in parts.items()))

    async def _append(self, topic: str, partition: int, part: list[tuple[QueuedCommand, OutRecord]]) -> None:
        try:
            await self.log.append(topic, partition, [record for _, record in part])
        except AppendFailed as error:
            logger.warning("commands for %s may not have been appended: %s", error.tp, error.reason)
            for outgoing, _ in part:
                outgoing.failed(error.reason)
            return
        for outgoing, _ in part:
            outgoing.left()
