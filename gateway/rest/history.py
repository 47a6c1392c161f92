"""An execution's past as the views have it, never older than what this gateway has read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from starlette.responses import Response

from gateway.identity.authentication import reads_project
from gateway.live.live import lane_of
from gateway.problems import Problem
from gateway.rest.list_cursors import mark_at, offset_in
from gateway.rest.request_context import RequestContext
from gateway.shares.work import owner_of
from projections.queries.history import NO_ROWS, ExecutionState, Fold, Until, WantedRows, event_at
from projections.queries.moment import Moment as ViewMoment
from projections.queries.paging import bounded
from projections.tables.conversations import MessageRow
from projections.tables.events import EventRow
from schemas.headers import epoch_ms
from schemas.ids import execution_key
from schemas.refusals import Refusal
from schemas.topics import partition_of

T = TypeVar("T")
R = TypeVar("R", EventRow, MessageRow)

VIEW_WAIT_S = 3.0
# `3@1234`, as events and facts are named, or `@1234`.
_PLACE = re.compile(r"([0-9]{1,9})?@([0-9]{1,15})")
PAUSE_S = 0.02


class LogQuery(Protocol[R]):
    """A query for an execution's rows after an offset of the log, in its order, or before it, in the reverse."""

    def __call__(
        self,
        moment: ViewMoment,
        tenant: str,
        project: str,
        execution_id: str,
        *,
        after_offset: int,
        limit: int,
    ) -> tuple[list[R], bool]:
        """Return the first of the rows, at most `limit`, and True if their size ended them."""
        ...


def read_until(text: str, partition: int) -> Until:
    """Return the moment, a time, a version or an offset, that a query parameter names.

    Args:
        text: the parameter.
        partition: the execution's partition of the log.

    Raises:
        Problem: 422, it is none of these, or an offset of another partition.
    """
    if (place := _PLACE.fullmatch(text)) is not None:
        if place[1] and int(place[1]) != partition:
            raise Problem(Refusal.INVALID, f"at: the events of this execution are in partition {partition}")
        return Until(offset=int(place[2]))
    if text.isascii() and text.isdigit() and len(text) < 16:
        return Until(version=int(text))
    return Until(at_ms=read_time(text, "at", ", a version, or an offset as @123"))


def read_time(text: str, name: str, otherwise: str = "") -> int:
    """Return the time (ms) of a query parameter; errors contain the parameter's name.

    Raises:
        Problem: 422, it is not an RFC 3339 time with a zone.
    """
    try:
        return epoch_ms(text.replace(" ", "+"))
    except ValueError as error:
        said = f"must be an RFC 3339 time with a zone, such as 2026-01-05T12:00:00Z{otherwise}"
        raise Problem(Refusal.INVALID, f"{name} {said}") from error


async def log_page(
    context: RequestContext,
    execution_id: str,
    query: LogQuery[R],
    item: Callable[[R], dict[str, Any]],
    *,
    is_descending: bool = False,
) -> Response:
    """Answer with a page of an execution's rows in the order of the log, by the request's cursor and limit.

    Args:
        context: of the request.
        execution_id: the execution.
        query: finds the rows after an offset.
        item: makes the JSON of a row.
        is_descending: the list is in the reverse order of the log, and the query finds the rows before an offset.

    Raises:
        Problem: 422, the cursor is invalid; 503, the views are behind for too long.
    """
    after, count, actor = offset_in(context.cursor(), is_descending), bounded(context.limit()), context.actor

    def mark(row: R) -> str:
        return mark_at(row["log_offset"], is_descending)

    async with context.gateway.work.page(owner_of(context.actor), context.views_wait):
        rows, is_cut = await read_execution(
            context,
            execution_id,
            lambda moment: query(
                moment, actor.tenant, actor.project, execution_id, after_offset=after, limit=count + 1
            ),
        )
        found, more = rows[:count], is_cut or len(rows) > count
        return await context.listed(found, item, mark(found[-1]) if more else None, mark)


async def fold_execution(
    context: RequestContext, execution_id: str, until: Until, wanted: WantedRows = NO_ROWS
) -> ExecutionState:
    """Return the state of an execution after a part of its history, with the rows that are wanted.

    The history is read in steps, each at the caller's cost; a caller beyond its share waits between two of them.

    Raises:
        Problem: as `read_execution`.
    """
    actor, work = context.actor, context.gateway.work
    fold = Fold(actor.tenant, actor.project, execution_id, until, wanted)
    while not await read_execution(context, execution_id, fold.step):
        await work.paid(owner_of(actor))
        context.views_wait.renew()
    return fold.state


async def read_execution(context: RequestContext, execution_id: str, ask: Callable[[ViewMoment], T]) -> T:
    """Query the views about an execution, once they have everything of it that this gateway has read.

    Raises:
        Problem: 503, the views are behind for too long, or cannot be read.
    """
    actor = context.actor
    key = execution_key(actor.tenant, actor.project, execution_id)
    partition = partition_of(key, context.gate.partitions)
    wanted = context.gate.live.ring.last_offset_of(key, lane_of(partition))
    return await _read_through(context, partition, wanted, ask)


async def read_place(context: RequestContext, partition: int, offset: int) -> EventRow | None:
    """Return the event at a place of the log; None if there is none that the caller may see.

    Which places are the caller's makes no difference to when and how this fails.

    Raises:
        Problem: as `read_execution`.
    """
    actor, read_through = context.actor, context.gate.live.read_through
    if partition >= context.gate.partitions:
        return None
    # Of what this gateway has not read itself nothing is known yet.
    wanted = offset if offset < read_through[lane_of(partition)] else -1
    agent = None if reads_project(actor) else actor.agent
    return await _read_through(
        context,
        partition,
        wanted,
        lambda moment: event_at(
            moment, actor.tenant, actor.project, partition=partition, offset=offset, agent=agent
        ),
    )


async def _read_through(
    context: RequestContext, partition: int, wanted: int, ask: Callable[[ViewMoment], T]
) -> T:
    """Query the views once they have read a partition through the wanted offset; -1: at once."""
    until = asyncio.get_running_loop().time() + VIEW_WAIT_S
    while True:
        found, positions = await context.ask_views(ask)
        if positions.executions.get(partition, 0) > wanted:
            return found
        if asyncio.get_running_loop().time() >= until:
            raise Problem(Refusal.UNAVAILABLE, "the views are behind the log: try again", retry_after=1)
        await asyncio.sleep(PAUSE_S)
