"""The definitions as every decider reads them, and their adoption by a partition."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from log.errors import LogTruncated
from log.places import TopicPartition
from log.port import Log
from schemas.event_signatures import LogSignatures
from schemas.events.log import DefinitionsAdopted
from schemas.principals import People
from schemas.record import RawRecord
from schemas.term import rule_of
from services.domain.context import Tool
from services.domain.definitions import Definitions, no_contrary
from services.domain.memory.standing_rules import StandingRule, StandingRules, never
from services.domain.policy import Verdict
from services.domain.state import Call, Execution
from services.domain.trust.book import KnownTrust
from services.domain.trust.reading import Contrary
from services.runtime.claim import read_up_to
from services.runtime.definitions_partition import DefinitionsPartition
from services.runtime.ledger import Ledger
from services.runtime.offloading import Offload, in_place

# Returns what is known of a tenant's and project's agent with a tool and a class of its calls; None while incomplete.
TrustFor = Callable[[str, str, str, str, str], KnownTrust | None]


def unknown_trust(tenant: str, project: str, agent: str, tool: str, trust_class: str) -> None:
    """Trust if nothing reads it: missing, so that a rule that needs it holds the call."""


@dataclass(slots=True)
class DefinitionsBook:
    """Follows `placet.definitions` under the term rule and notifies listeners.

    Records are folded `offload`, since compiling them may take long. The visible state changes at once, on the event
    loop, when a chunk of records has been folded.
    """

    log: Log
    empty: Definitions
    listeners: set[Callable[[], None]] = field(default_factory=set)
    signatures: LogSignatures | None = None
    offload: Offload = in_place
    _ledger: Ledger = field(init=False)
    _folded: DefinitionsPartition = field(init=False)
    _current: Definitions = field(init=False)
    _through_record: tuple[str, int] = field(init=False)
    _read: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self._folded = DefinitionsPartition(self.empty)
        self._ledger = Ledger(self._folded, rule_of(self.signatures, self.tp.topic), offload=self.offload)
        self._show()

    @property
    def tp(self) -> TopicPartition:
        """The partition of the definitions."""
        return TopicPartition(self.log.topics.definitions, 0)

    @property
    def current(self) -> Definitions:
        """Everything published so far, as an immutable value."""
        return self._current

    @property
    def through_record(self) -> tuple[str, int]:
        """The id and the term of the newest definition's record."""
        return self._through_record

    def answered(self, key: bytes, command_id: str) -> bool:
        """True if a command for a definition is known to have left its trace."""
        return self._folded.has_answered(key, command_id)

    async def follow(self) -> None:
        """Read for ever.

        Raises:
            LogError: the log failed.
        """
        async with aclosing(self.log.tail(self.tp.topic, {0: self._ledger.next_offset})) as chunks:
            async for _, raws in chunks:
                await self._take(raws)

    async def _take(self, raws: Sequence[RawRecord]) -> None:
        async with self._read:
            before = self.current.through_offset
            await self._ledger.read_all(raws)
            self._show()
            self._read.notify_all()
        if self.current.through_offset != before:
            for listener in tuple(self.listeners):
                listener()

    async def load(self) -> None:
        """Read once up to the high watermark, before following."""
        _, end = await self.log.bounds(self.tp)
        await read_up_to(self.log, self.tp, self._ledger, end)
        self._show()

    def _show(self) -> None:
        self._current, self._through_record = self._folded.current, self._folded.through_record

    async def catch_up(self) -> None:
        """Wait until `follow` has read everything below the present high watermark."""
        _, end = await self.log.bounds(self.tp)
        async with self._read:
            await self._read.wait_for(lambda: self._ledger.next_offset >= end)


@dataclass(slots=True)
class Adoption:
    """The definitions that one partition judges by: changed only together with a `DefinitionsAdopted` in its log."""

    book: DefinitionsBook
    in_force: Definitions = field(init=False)
    _next: Definitions | None = None

    def __post_init__(self) -> None:
        self.in_force = self.book.current

    def pending(self, adopted_through: int) -> DefinitionsAdopted | None:
        """See `writer.Adoption.pending`.

        Raises:
            LogTruncated: the partition has adopted more than the definitions hold.
        """
        newest = self.book.current
        if newest.through_offset < adopted_through:
            raise LogTruncated(self.book.tp, adopted_through, 0, newest.through_offset + 1)
        self._next = newest
        if newest.through_offset == adopted_through:
            self.in_force = newest
            return None
        record_id, term = self.book.through_record
        return DefinitionsAdopted(
            through_offset=newest.through_offset,
            through_record_id=record_id,
            through_term=term,
            versions=newest.since(adopted_through),
        )

    def put_in_force(self) -> None:
        """See `writer.Adoption.put_in_force`."""
        if self._next is not None:
            self.in_force = self._next

    async def catch_up(self) -> None:
        """See `writer.Adoption.catch_up`."""
        await self.book.catch_up()


@dataclass(slots=True)
class AdoptedRules:
    """The definitions in force on a partition, for its executions (`executions_partition.Rules`)."""

    adoption: Adoption
    trust: TrustFor = unknown_trust

    @property
    def through_offset(self) -> int:
        """The offset of the newest definition in force."""
        return self.adoption.in_force.through_offset

    @property
    def people(self) -> People:
        """The published principals."""
        return self.adoption.in_force.people

    @property
    def standing(self) -> StandingRules:
        """The standing rules."""
        return self.adoption.in_force.standing

    def tool(self, tenant: str, name: str, project: str) -> Tool | None:
        """A published tool, as a project sees it."""
        return self.adoption.in_force.tool(tenant, name, project)

    def judge(
        self,
        execution: Execution,
        call: Call,
        now_ms: int,
        *,
        rests: Callable[[StandingRule], bool] = never,
        contrary: Callable[[str], Contrary | None] = no_contrary,
        against: Callable[[str], Contrary | None] = no_contrary,
    ) -> Verdict:
        """See `Definitions.judge`."""
        place = (execution.tenant, execution.project, call.agent, call.tool)
        return self.adoption.in_force.judge(
            execution,
            call,
            now_ms,
            rests=rests,
            contrary=contrary,
            against=against,
            trust=lambda trust_class: self.trust(*place, trust_class),
        )
