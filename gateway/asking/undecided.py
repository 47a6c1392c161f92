"""Proposals that are in the log and not decided yet; any gateway can find them.

Only a call that is found nowhere else is searched for, in the commands that the partition's decider has not handled
yet, and in a limited number of them: if more are waiting, there is no answer. Only commands signed by a gateway
count, and only those that were not answered already.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from gateway.asking.asker import Answers
from gateway.kafka.past import KafkaPast
from gateway.live.live import Live
from gateway.live.past import PastGone
from gateway.live.reader import Reader, Subject
from gateway.live.waiters import Wanted
from gateway.problems import Problem
from log.errors import LogError, TopicForbidden
from projections.folds.rows import Row
from schemas.actor import Actor
from schemas.commands import ProposeToolCall
from schemas.envelope import Verifier
from schemas.record import Command, RawRecord, UnreadableRecord
from schemas.refusals import Refusal
from schemas.topics import partition_of

LOOK_BACK = 2_000
TIMEOUT_S = 3.0
AT_ONCE = 2

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Undecided:
    """Searches the waiting commands for proposals.

    Attributes:
        past: reads the commands; a lane is a partition.
        live: has the position of the deciders.
        verifier: proves who sent a command.
        answers: the answered commands in the views.
        partitions: the number of partitions of the commands.
    """

    past: KafkaPast
    live: Live
    verifier: Verifier
    answers: Answers
    partitions: int
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def proposal(self, key: bytes, call_id: str) -> ProposeToolCall | None:
        """Return the first proposal of a call that waits to be decided; None if there is none.

        Raises:
            Problem: 503, the search is not possible now.
        """
        try:
            async with asyncio.timeout(TIMEOUT_S), self._turns:
                return await self._find(partition_of(key, self.partitions), key, call_id)
        except TopicForbidden as error:
            # A cluster with the ACLs of an earlier version: waiting calls are shown once they are decided.
            logger.warning("this gateway may not read the commands (docs/log-contract.md): %s", error)
            return None
        except (LogError, PastGone, TimeoutError) as error:
            raise _cannot_tell() from error

    async def close(self) -> None:
        """Close the connections."""
        await self.past.close()

    async def _find(self, partition: int, key: bytes, call_id: str) -> ProposeToolCall | None:
        first, end = (await self.past.bounds([partition]))[partition]
        waiting = max(first, self.live.decided.get(partition, -1) + 1)
        start = max(waiting, end - LOOK_BACK)
        found = await self._read(partition, start, end, key, call_id) if start < end else None
        if found is None and waiting < start:
            raise _cannot_tell()
        return found

    async def _read(
        self, partition: int, start: int, end: int, key: bytes, call_id: str
    ) -> ProposeToolCall | None:
        async with aclosing(self.past.read({partition: start})) as chunks:
            async for _, raws in chunks:
                for raw in raws:
                    if raw.key == key and (found := await self._waiting(raw, call_id)) is not None:
                        return found
                    if raw.offset >= end - 1:
                        return None
        return None

    async def _waiting(self, raw: RawRecord, call_id: str) -> ProposeToolCall | None:
        """Return the proposal in a record; None if it is another one, not signed, or already answered."""
        try:
            command = self.verifier.read(raw)
        except UnreadableRecord:
            return None
        body = command.body
        if not isinstance(body, ProposeToolCall) or body.call_id != call_id:
            return None
        return None if await self._is_answered(command) else body

    async def _is_answered(self, command: Command) -> bool:
        group = self.live.ring.of_command(command.key, command.command_id, command.digest)
        if group is not None and group.key == command.key:
            return True
        wanted = Wanted(command.actor.tenant, command.actor.project, command.command_id, command.key)
        found = (await self.answers.answers([wanted])).get(wanted)
        return found is not None and found.key == command.key


class Waiting(Protocol):
    """Finds proposals that wait to be decided."""

    async def proposal(self, key: bytes, call_id: str) -> ProposeToolCall | None:
        """As `Undecided.proposal`."""
        ...


async def row_or_proposal(reader: Reader, waiting: Waiting, subject: Subject) -> Row | ProposeToolCall:
    """Return a call's row, or its proposal if it is not decided yet.

    Raises:
        Problem: 404, there is neither; 503, the search is not possible now.
    """
    try:
        return await reader.read(subject)
    except Problem as problem:
        if problem.code is not Refusal.NOT_FOUND:
            raise
    # It may have been decided between the two searches, so the first one is repeated.
    return await waiting.proposal(subject.key, subject.id) or await reader.read(subject)


def _cannot_tell() -> Problem:
    detail = "it cannot be determined now whether the call waits to be decided: try again in a moment"
    return Problem(Refusal.UNAVAILABLE, detail, retry_after=1)


def no_tokens(text: str, at_ms: int) -> Actor:
    """Trust no service by its token: commands that it wrote to the log itself did not pass through a gateway."""
    raise UnreadableRecord("unbelievable", "sent with a token")
