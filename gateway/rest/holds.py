"""/v1/holds: the calls and requests that wait for a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, get_args

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.actions.holds import VERBS
from gateway.bodies import read_body
from gateway.deciding import check_sees_hold, may_decide, sees_hold
from gateway.identity.authentication import reads_project
from gateway.operations.holds import (
    plan_bulk_decision,
    plan_change,
    plan_decision,
    problem_item,
    reply_item,
    subject_of,
)
from gateway.operations.plan import Plan
from gateway.operations.views import as_opened
from gateway.problems import Problem
from gateway.rest.documented import change, operation, verb_route
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, Choice, Parameter
from gateway.rest.request_context import RequestContext, answer, context_of, listed
from gateway.shares.work import owner_of
from projections.folds.holds import hold_json
from projections.queries import lists
from projections.queries.moment import READ_BYTES, size_of
from projections.queries.paging import MAX_LIMIT, BadCursor, Page, bounded, page_of, read_cursor
from projections.tables.holds import HoldRow
from schemas.commands import RequestKind
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1/holds", tags=["holds"])
Context = Annotated[RequestContext, Depends(context_of)]
ME = "me"
STATUS = Choice("status", "Only holds of this status.", choices=get_args(r.HoldStatus))
KIND = Choice("kind", "Only holds of this kind.", choices=get_args(RequestKind))
DECIDABLE = Choice(
    "decidable",
    f"`{ME}`: only open holds that the token's subject may decide and has not decided yet.",
    choices=(ME,),
)
FILTERS = (
    STATUS,
    KIND,
    Parameter("agent", "Only those of this agent."),
    Parameter(
        "assignee",
        f"Only those that this subject has claimed or was delegated; `{ME}` is the token's subject.",
    ),
    DECIDABLE,
    Parameter("prefix", "Only those whose id begins with this."),
)
# If the caller may see few of the project's holds, one page is made from at most this many of the project's pages.
PAGES_MAX = 4
ORDER = ("opened_at_ms", "hold_id")


@router.get(
    "",
    operation_id="listHolds",
    **operation({200: r.Page[r.Hold]}, parameters=(*FILTERS, CURSOR, LIMIT, AFTER)),
)
async def list_holds(context: Context) -> Response:
    """List holds, longest open first.

    An agent's token sees its own agent's holds. A token that may not read the whole project sees the holds that its
    subject may decide or has decided.
    """
    limit = bounded(context.limit())
    filters, status = _filters(context), context.one_of(STATUS)
    if _is_of_open(context, status):
        # In memory here: it waits for no page of the views.
        await context.settle_after()
        return await _answered(context, filters, status, limit)
    await context.settle_views_after()
    async with context.gateway.work.page(owner_of(context.actor), context.views_wait):
        return await _answered(context, filters, status, limit)


async def _answered(
    context: RequestContext, filters: dict[str, str | None], status: str | None, limit: int
) -> Response:
    try:
        page = await _page(context, filters, status, context.cursor(), limit)
    except BadCursor as error:
        raise Problem(Refusal.INVALID, str(error)) from error
    return await context.page(page, hold_json)


@router.post(
    "/decisions",
    operation_id="decideHolds",
    **operation({200: r.BulkAnswer}, body=b.DecideHolds, writes=True),
)
async def decide_many(context: Context) -> Response:
    """Decide several holds of low risk: one answer for each item, in order."""
    given = await context.given()
    gate = context.gate
    bulk = read_body(b.DecideHolds, given())
    # Each item costs what a request costs, and counts as one.
    context.count_requests(len(bulk.items) - 1)
    answered = []
    for index, item in enumerate(bulk.items):
        key = f"{context.key}#{index}" if context.key else None
        try:
            reply = await context.priced(gate.perform(_planner(context, item, key)))
            answered.append(reply_item(item.hold_id, reply))
        except Problem as problem:
            answered.append(problem_item(item.hold_id, problem))
    return answer(listed(gate, answered))


@router.get(
    "/{hold_id}",
    operation_id="getHold",
    **operation({200: r.Hold}, 404, parameters=(AFTER,)),
)
async def get_hold(context: Context, hold_id: str) -> Response:
    """Get a hold."""
    await context.settle_after()
    row: HoldRow = await context.gate.reader.read(subject_of(context.actor, hold_id))
    check_sees_hold(context.gate.live, row, context.actor)
    row = await as_opened(context.gate, context.actor, row)
    return answer(context.gate.json(hold_json(row)))


@router.post("/{hold_id}/decision", operation_id="decideHold", **change(r.Recorded, b.DecideHold))
async def decide(context: Context, hold_id: str) -> Response:
    """Approve, edit, reject or respond, with exactly the digest that the reviewer saw."""
    given = await context.given()
    return await context.perform(
        lambda: plan_decision(context.gate, context.claims, hold_id, given, context.key)
    )


def _change(verb: str) -> Callable[[RequestContext, str], Awaitable[Response]]:
    async def change_hold(context: Context, hold_id: str) -> Response:
        given = await context.given()
        return await context.perform(
            lambda: plan_change(context.gate, context.claims, hold_id, verb, given, context.key)
        )

    return change_hold


for _verb in VERBS:
    verb_route(router, "/{hold_id}", _verb, change(r.Hold, _verb.body))(_change(_verb.name))


def _planner(context: RequestContext, item: b.DecideOneOfMany, key: str | None) -> Callable[[], Plan]:
    return lambda: plan_bulk_decision(context.gate, context.claims, item, key)


def _filters(context: RequestContext) -> dict[str, str | None]:
    actor = context.actor
    agent = context.query("agent")
    if context.one_of(DECIDABLE) is not None and context.query("status") not in (None, "open"):
        raise Problem(Refusal.INVALID, "decidable is only for open holds: leave status out")
    if not reads_project(actor):
        if actor.agent is not None and agent not in (None, actor.agent):
            raise Problem(Refusal.NOT_AUTHORISED, "this token may only list its own agent's holds")
        agent = actor.agent or agent
    assignee = context.query("assignee")
    return {
        "kind": context.one_of(KIND),
        "agent": agent,
        "assignee": actor.subject if assignee == ME else assignee,
        "prefix": context.query("prefix"),
    }


def _is_of_open(context: RequestContext, status: str | None) -> bool:
    """Return True if the gateway answers from its own memory, which has only the open holds."""
    return status == "open" or bool(context.query("decidable"))


async def _page(
    context: RequestContext,
    filters: dict[str, str | None],
    status: str | None,
    cursor: str | None,
    limit: int,
) -> Page:
    actor = context.actor
    decidable = context.query("decidable")
    if _is_of_open(context, status):
        live = context.gate.live
        rows = live.cache.open_holds(actor.tenant, actor.project)
        if not decidable and reads_project(actor):
            return _open_page(rows, filters, cursor, limit)
        asked = may_decide if decidable else sees_hold
        return await context.done(
            lambda: _open_page([row for row in rows if asked(live, row, actor)], filters, cursor, limit)
        )
    if reads_project(actor) or actor.agent is not None:
        return await _read_page(context, filters, status, cursor, limit)
    return await _seen_page(context, filters, status, cursor, limit)


async def _read_page(
    context: RequestContext,
    filters: dict[str, str | None],
    status: str | None,
    cursor: str | None,
    limit: int,
) -> Page:
    tenant, project = context.actor.tenant, context.actor.project
    page, _ = await context.ask_views(
        lambda moment: lists.holds(
            moment, tenant, project, status=status, cursor=cursor, limit=limit, **filters
        )
    )
    return page


async def _seen_page(
    context: RequestContext,
    filters: dict[str, str | None],
    status: str | None,
    cursor: str | None,
    limit: int,
) -> Page:
    """Return the next page of the holds that the actor may see, from a bounded number of the project's pages."""
    live, actor = context.gate.live, context.actor
    seen: list[HoldRow] = []
    for _ in range(PAGES_MAX):
        page = await _read_page(context, filters, status, cursor, MAX_LIMIT)
        seen += [row for row in page.rows if sees_hold(live, row, actor)]
        if len(seen) > limit:
            return page_of(seen[: limit + 1], limit, *ORDER)
        cursor = page.next_cursor
        if cursor is None or sum(map(size_of, seen)) >= READ_BYTES:
            break
    return Page(seen, cursor, ORDER)


def _open_page(rows: list[HoldRow], filters: dict[str, str | None], cursor: str | None, limit: int) -> Page:
    """Return a page of the open holds from the live cache, in the order and with the cursors of the views."""
    mark = read_cursor(cursor)
    found = [row for row in rows if _fits(row, filters) and (mark is None or _place(row) > mark)]
    found.sort(key=_place)
    return page_of(found[: limit + 1], limit, *ORDER)


def _place(row: HoldRow) -> tuple[int, str]:
    return row["opened_at_ms"], row["hold_id"]


def _fits(row: HoldRow, filters: dict[str, str | None]) -> bool:
    shown = {
        "kind": row["kind"],
        "agent": row["agent"],
        "assignee": row["claimed_by"] or row["assignee"],
    }
    begins = row["hold_id"].startswith(filters["prefix"] or "")
    return begins and all(filters[name] in (None, value) for name, value in shown.items())
