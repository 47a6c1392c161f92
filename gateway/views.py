"""The gateway's queries of the views: rows with the positions of their moment, answers, and the starting state."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from gateway.live.cache import key_of
from gateway.live.outcome import Outcome, Refused, given_up, outcome_of
from gateway.live.prefetch import StoredExecutions
from gateway.live.reader import REQUESTS_MAX, Found, FoundAll, Named, Subject
from gateway.live.waiters import Wanted
from gateway.problems import Problem
from gateway.shares.work import Owner, Work
from projections.folds.text import GIVEN_UP
from projections.queries import definitions, history, resources
from projections.queries.history import ExecutionState, Fold, Until, WantedRows
from projections.queries.moment import Moment
from projections.queries.open_work import (
    executions_by_key,
    open_calls,
    open_executions,
    open_holds,
    open_turns,
)
from projections.queries.views import Positions, Views
from projections.store.port import Position, ViewError, ViewUnavailable
from projections.tables.answers import AnswerRow
from projections.tables.calls import CallRow
from projections.tables.conversations import TurnRow
from projections.tables.definitions import DefinitionRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.events.definitions import PolicyPublished, PolicyRetired, PrincipalPublished, ToolPublished
from schemas.ids import split_execution_key
from schemas.refusals import Refusal
from schemas.topics import Topics

logger = logging.getLogger(__name__)

T = TypeVar("T")
# The time to read everything that is open in a large installation.
BEGIN_WITHIN_S = 60.0
# A step of a long history is followed by a rest of so many times its length, so that others are served.
REST_OF_STEP = 1.0


class Beginning(NamedTuple):
    """One moment of the views, from which the live state continues."""

    positions: list[Position]
    adopted: dict[int, int]
    executions: list[ExecutionRow]
    calls: list[CallRow]
    holds: list[HoldRow]
    turns: list[TurnRow]


class Reads(Protocol):
    """Queries the views at one moment."""

    async def __call__(self, ask: Callable[[Moment], T]) -> tuple[T, Positions]:
        """Return the answer with its positions.

        Raises:
            Problem: they cannot be read, or not by this caller now.
        """
        ...


@dataclass(frozen=True, slots=True)
class Lookups:
    """Single rows of the views, see `gateway.live.reader.Rows`."""

    read: Reads

    async def find(self, subject: Subject) -> Found:
        """Return the row of a subject with the positions of the same moment; errors as `Reads`."""
        row, positions = await self.read(lambda moment: _find(moment, subject))
        return Found(row, positions.executions)

    async def requests(self, named: Named) -> FoundAll:
        """Return the requests with an id, newest first, with the positions of the same moment; errors as `Reads`."""
        owner = (named.tenant, named.project, named.request_id)
        rows, positions = await self.read(
            lambda moment: resources.requests(moment, *owner, agent=named.agent, limit=REQUESTS_MAX)
        )
        return FoundAll(rows, positions.executions)


@dataclass(frozen=True, slots=True)
class GatewayViews:
    """Reads for one gateway."""

    views: Views
    topics: Topics
    # Of each partition, how far the views were seen.
    seen: dict[int, int] = field(default_factory=dict)

    @property
    def lookups(self) -> Lookups:
        """Lookups for the gateway itself, which are charged to no subject."""
        return Lookups(self.read)

    def lookups_of(self, work: Work, owner: Owner) -> Lookups:
        """Return lookups for a subject, at its cost; beyond its share they raise 429 quota."""

        async def read(ask: Callable[[Moment], T]) -> tuple[T, Positions]:
            return await work.looked_up(owner, self.read, ask)

        return Lookups(read)

    async def read(self, ask: Callable[[Moment], T]) -> tuple[T, Positions]:
        """Query the views at one moment.

        Raises:
            Problem: 503, they cannot be read.
        """
        try:
            found, positions = await self.views.read(ask)
        except ViewError as error:
            # Each read fails during an outage: `vitals.logs` writes this once in ten seconds.
            logger.error("the views cannot be read: %s", error)
            raise Problem(Refusal.UNAVAILABLE, error.public, retry_after=1) from error
        for partition, offset in positions.executions.items():
            self.seen[partition] = max(offset, self.seen.get(partition, 0))
        return found, positions

    async def read_whole(self, ask: Callable[[Moment], T]) -> tuple[T, Positions]:
        """As `read`, for lists and figures: of views that are built anew, a part would look like all there is.

        Raises:
            Problem: 503, they cannot be read, or have not read as far as they had before.
        """
        floor = dict(self.seen)
        found, positions = await self.read(ask)
        if any(positions.executions.get(partition, 0) < offset for partition, offset in floor.items()):
            raise Problem(
                Refusal.UNAVAILABLE,
                "the views are being built anew, and do not have everything yet: try again in a moment",
                retry_after=1,
            )
        return found, positions

    async def answers(self, wanted: list[Wanted]) -> dict[Wanted, Outcome]:
        """Return the outcomes of commands, as far as they are known: else that of another command with the same id.

        If the views cannot be read, none is known: the waiters continue to wait.
        """
        try:
            return (await self.views.read(lambda moment: _answers(moment, wanted, self.topics)))[0]
        except ViewUnavailable:
            return {}

    async def executions(self, keys: Collection[bytes]) -> StoredExecutions:
        """Return the rows of executions by their Kafka keys, as far as the views have them, with the positions.

        Raises:
            Problem: 503, they cannot be read.
        """
        rows, positions = await self.read(lambda moment: executions_by_key(moment, keys))
        return StoredExecutions({key_of(row): row for row in rows}, positions.executions)

    async def state_before(
        self, key: bytes, partition: int, offset: int, wanted: WantedRows
    ) -> ExecutionState | None:
        """Return an execution as it was before an offset of its partition, with the rows that are wanted.

        None if the views have not read that far.

        Raises:
            Problem: 503, they cannot be read.
        """
        fold = Fold(*split_execution_key(key), Until(offset=offset - 1), wanted)
        while True:
            started_s = time.monotonic()
            is_done, positions = await self.read(fold.step)
            if positions.executions.get(partition, 0) < offset:
                # At each step: the first one looks for rows of what comes last.
                return None
            if is_done:
                return fold.state
            await asyncio.sleep(REST_OF_STEP * (time.monotonic() - started_s))

    async def beginning(self, executions_max: int) -> Beginning:
        """Return the starting positions, with everything that is open there.

        Raises:
            ViewUnavailable: there is no view yet.
        """
        ask = functools.partial(_beginning, executions_max=executions_max)
        return (await self.views.read(ask, BEGIN_WITHIN_S))[0]


def _find(moment: Moment, subject: Subject) -> ExecutionRow | CallRow | HoldRow | TurnRow | None:
    owner = (subject.tenant, subject.project)
    match subject.kind:
        case "execution":
            return resources.execution(moment, *owner, subject.execution_id)
        case "call":
            return resources.call(moment, *owner, subject.execution_id, subject.id)
        case "turn":
            return resources.turn(moment, *owner, subject.execution_id, subject.id)
    return resources.hold(moment, *owner, subject.id)


def _answers(moment: Moment, wanted: list[Wanted], topics: Topics) -> dict[Wanted, Outcome]:
    found: dict[Wanted, Outcome] = {}
    for one in wanted:
        row = resources.answer(moment, one.tenant, one.project, one.command_id, one.key.decode())
        if row is not None:
            is_definition = row["topic"] == topics.definitions
            found[one] = _published(moment, row) if is_definition else _decided(moment, row)
    return found


def _decided(moment: Moment, row: AnswerRow) -> Outcome:
    return outcome_of(history.events_of_answer(moment, row), old=True)


def _published(moment: Moment, row: AnswerRow) -> Outcome:
    refused = Refused(Refusal(row["code"]), row["detail"] or "") if row["code"] else None
    if (row["detail"] or "").startswith(GIVEN_UP):
        refused = given_up()
    version = definitions.published_by_command(moment, row)
    body = None if version is None else _publication(version)
    return Outcome(
        row["command_digest"],
        row["log_key"].encode(),
        refused,
        body,
        last_offset=row["last_offset"],
        old=True,
    )


def _publication(row: DefinitionRow) -> PolicyPublished | PolicyRetired | ToolPublished | PrincipalPublished:
    name, version, by, document = row["name"], row["version"], row["published_by"], row["document"]
    project = row["project"]
    match row["kind"]:
        case "policy-retired":
            reason = json.loads(document)["reason"]
            return PolicyRetired(name=name, version=version, reason=reason, by=by, project=project)
        case "policy":
            return PolicyPublished(name=name, version=version, document=document, by=by, project=project)
        case "principal":
            return PrincipalPublished(name=name, version=version, document=document, by=by, project=project)
    version_of_tool = row["tool_version"]
    return ToolPublished(
        name=name, version=version, tool_version=version_of_tool, definition=document, by=by, project=project
    )


def _beginning(moment: Moment, executions_max: int) -> Beginning:
    calls, holds, turns = open_calls(moment), open_holds(moment), open_turns(moment)
    executions = open_executions(moment, executions_max)
    # What follows in open work needs its execution, however long ago that started.
    older = {key_of(row) for row in (*calls, *holds, *turns)} - {key_of(row) for row in executions}
    return Beginning(
        moment.positions(),
        definitions.adopted_through(moment),
        [*executions_by_key(moment, older), *executions],
        calls,
        holds,
        turns,
    )
