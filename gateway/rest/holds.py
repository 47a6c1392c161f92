"""/v1/holds: the calls and requests that wait for a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, get_args

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.bodies import read_body
from gateway.deciding import check_sees_hold, may_decide, sees_hold
from gateway.identity.doors import reads_project
from gateway.operations import executions
from gateway.operations.holds import (
    plan_bulk_decision,
    plan_change,
    plan_decision,
    problem_item,
    reply_item,
    subject_of,
)
from gateway.operations.plan import Plan
from gateway.problems import Problem
from gateway.rest.documented import change, operation, verb_route
from gateway.rest.door import Door, answer, door_of, listed
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, Parameter, Word
from gateway.words.holds import VERBS
from projections.folds.holds import hold_json
from projections.queries import lists
from projections.queries.paging import MAX_LIMIT, BadCursor, Page, bounded, page_of, read_cursor
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.commands import RequestKind
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1/holds", tags=["holds"])
AtDoor = Annotated[Door, Depends(door_of)]
ME = "me"
STATUS = Word("status", "Only holds of this status.", words=get_args(r.HoldStatus))
KIND = Word("kind", "Only holds of this kind.", words=get_args(RequestKind))
DECIDABLE = Word(
    "decidable",
    f"`{ME}`: only open holds that the token's subject may decide and has not decided yet.",
    words=(ME,),
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
async def list_holds(door: AtDoor) -> Response:
    """List holds, longest open first.

    An agent's token sees its own agent's holds. A token that may not read the whole project sees the holds that its
    subject may decide or has decided.
    """
    limit = bounded(door.limit())
    filters, status = _filters(door), door.one_of(STATUS)
    await (door.settle_after() if _is_of_open(door, status) else door.settle_views_after())
    try:
        page = await _page(door, filters, status, door.query("cursor"), limit)
    except BadCursor as error:
        raise Problem(Refusal.INVALID, str(error)) from error
    return await door.page(page, hold_json)


@router.post(
    "/decisions",
    operation_id="decideHolds",
    **operation({200: r.BulkAnswer}, body=b.DecideHolds, writes=True),
)
async def decide_many(door: AtDoor) -> Response:
    """Decide several holds of low risk: one answer for each item, in order."""
    given = await door.given()
    gate = door.gate
    bulk = read_body(b.DecideHolds, given())
    answered = []
    for index, item in enumerate(bulk.items):
        key = f"{door.key}#{index}" if door.key else None
        try:
            reply = await door.priced(gate.perform(_planner(door, item, key)))
            answered.append(reply_item(item.hold_id, reply))
        except Problem as problem:
            answered.append(problem_item(item.hold_id, problem))
    return answer(listed(gate, answered))


@router.get(
    "/{hold_id}",
    operation_id="getHold",
    **operation({200: r.Hold}, 404, parameters=(AFTER,)),
)
async def get_hold(door: AtDoor, hold_id: str) -> Response:
    """Get a hold."""
    await door.settle_after()
    row: HoldRow = await door.gate.reader.read(subject_of(door.actor, hold_id))
    check_sees_hold(door.gate.live, row, door.actor)
    if row["request"] is None:
        # Its execution was not cached when the hold opened.
        run: ExecutionRow = await door.gate.reader.read(
            executions.subject_of(door.actor, row["execution_id"])
        )
        row = row | {"request": run["request"]}
    return answer(door.gate.json(hold_json(row)))


@router.post("/{hold_id}/decision", operation_id="decideHold", **change(r.Recorded, b.DecideHold))
async def decide(door: AtDoor, hold_id: str) -> Response:
    """Approve, edit, reject or respond, with exactly the digest that the reviewer saw."""
    given = await door.given()
    return await door.perform(lambda: plan_decision(door.gate, door.claims, hold_id, given, door.key))


def _change(verb: str) -> Callable[[Door, str], Awaitable[Response]]:
    async def change_hold(door: AtDoor, hold_id: str) -> Response:
        given = await door.given()
        return await door.perform(lambda: plan_change(door.gate, door.claims, hold_id, verb, given, door.key))

    return change_hold


for _verb in VERBS:
    verb_route(router, "/{hold_id}", _verb, change(r.Hold, _verb.body))(_change(_verb.name))


def _planner(door: Door, item: b.DecideOneOfMany, key: str | None) -> Callable[[], Plan]:
    return lambda: plan_bulk_decision(door.gate, door.claims, item, key)


def _filters(door: Door) -> dict[str, str | None]:
    actor = door.actor
    agent = door.query("agent")
    if door.one_of(DECIDABLE) is not None and door.query("status") not in (None, "open"):
        raise Problem(Refusal.INVALID, "decidable is only for open holds: leave status out")
    if not reads_project(actor):
        if actor.agent is not None and agent not in (None, actor.agent):
            raise Problem(Refusal.NOT_AUTHORISED, "this token may only list its own agent's holds")
        agent = actor.agent or agent
    assignee = door.query("assignee")
    return {
        "kind": door.one_of(KIND),
        "agent": agent,
        "assignee": actor.subject if assignee == ME else assignee,
        "prefix": door.query("prefix"),
    }


def _is_of_open(door: Door, status: str | None) -> bool:
    """Return True if the gateway answers from its own memory, which has only the open holds."""
    return status == "open" or bool(door.query("decidable"))


async def _page(
    door: Door, filters: dict[str, str | None], status: str | None, cursor: str | None, limit: int
) -> Page:
    actor = door.actor
    decidable = door.query("decidable")
    if _is_of_open(door, status):
        live = door.gate.live
        rows = live.cache.open_holds(actor.tenant, actor.project)
        if not decidable and reads_project(actor):
            return _open_page(rows, filters, cursor, limit)
        asked = may_decide if decidable else sees_hold
        return await door.done(
            lambda: _open_page([row for row in rows if asked(live, row, actor)], filters, cursor, limit)
        )
    if reads_project(actor) or actor.agent is not None:
        return await _read_page(door, filters, status, cursor, limit)
    return await _seen_page(door, filters, status, cursor, limit)


async def _read_page(
    door: Door, filters: dict[str, str | None], status: str | None, cursor: str | None, limit: int
) -> Page:
    tenant, project = door.actor.tenant, door.actor.project
    page, _ = await door.ask_views(
        lambda moment: lists.holds(
            moment, tenant, project, status=status, cursor=cursor, limit=limit, **filters
        )
    )
    return page


async def _seen_page(
    door: Door, filters: dict[str, str | None], status: str | None, cursor: str | None, limit: int
) -> Page:
    """Return the next page of the holds that the actor may see, from a bounded number of the project's pages."""
    live, actor = door.gate.live, door.actor
    seen: list[HoldRow] = []
    for _ in range(PAGES_MAX):
        page = await _read_page(door, filters, status, cursor, MAX_LIMIT)
        seen += [row for row in page.rows if sees_hold(live, row, actor)]
        if len(seen) > limit:
            return page_of(seen[: limit + 1], limit, *ORDER)
        cursor = page.next_cursor
        if cursor is None:
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
