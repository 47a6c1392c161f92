"""/v1/standing-rules: remembered decisions, and changes of their status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.actions.standing_rules import VERBS
from gateway.identity.authentication import check_reads
from gateway.operations.standing_rules import plan_change, rule_row
from gateway.rest.documented import operation, verb_route
from gateway.rest.parameters import AFTER, CURSOR, Choice
from gateway.rest.request_context import RequestContext, answer, context_of
from projections.folds.standing_rules import standing_rule_json
from projections.queries import standing_rules
from projections.tables.standing_rules import StandingRuleRow
from schemas.standing_rule import standing_rule_from_text

router = APIRouter(prefix="/v1/standing-rules", tags=["definitions"])
Context = Annotated[RequestContext, Depends(context_of)]
STATUS = Choice(
    "status",
    "Only rules of this status.",
    choices=("proposed", "active", "suspended", "revoked", "refused"),
)


@router.get(
    "",
    operation_id="listStandingRules",
    **operation({200: r.Page[r.StandingRule]}, parameters=(STATUS, CURSOR, AFTER)),
)
async def list_rules(context: Context) -> Response:
    """List every standing rule of the project, newest first, with the uses given out so far."""
    check_reads(context.actor)
    await context.settle_views_after()
    status = context.one_of(STATUS)
    actor = context.actor
    rows = [
        row
        for (tenant, _), row in context.gate.live.definitions.standing.items()
        if (tenant, row["project"]) == (actor.tenant, actor.project)
        and row["status"] == (status or row["status"])
    ]
    counts, _ = await context.ask_views(
        lambda moment: standing_rules.counts(moment, actor.tenant, actor.project)
    )
    return await context.listed_after(
        sorted(rows, key=_newest_first),
        lambda row: _shown(row, counts.get(row["rule_id"], 0)),
        _newest_first,
    )


@router.get(
    "/{rule_id}",
    operation_id="getStandingRule",
    **operation({200: r.StandingRule}, 404, parameters=(AFTER,)),
)
async def get_rule(context: Context, rule_id: str) -> Response:
    """Get a standing rule: what it covers, on what evidence, and how often it was used."""
    check_reads(context.actor)
    await context.settle_views_after()
    row = await rule_row(context.gate, context.actor, rule_id)
    return answer(context.gate.json(_shown(row, await _used(context, rule_id))))


def _change(verb: str) -> Callable[[RequestContext, str], Awaitable[Response]]:
    async def change_standing_rule(context: Context, rule_id: str) -> Response:
        given = await context.given()

        async def used(row: StandingRuleRow) -> int | None:
            return None if row["uses"] is None else await _used(context, rule_id)

        return await context.perform(
            lambda: plan_change(context.gate, context.claims, rule_id, verb, given, context.key, used)
        )

    return change_standing_rule


for _verb in VERBS:
    _said = operation({200: r.ChangedRule, 202: r.ChangedRule}, 404, 409, body=_verb.body, writes=True)
    verb_route(router, "/{rule_id}", _verb, _said)(_change(_verb.name))


async def _used(context: RequestContext, rule_id: str) -> int:
    actor = context.actor
    counts, _ = await context.ask_views(
        lambda moment: standing_rules.counts(moment, actor.tenant, actor.project, rule_id)
    )
    return counts.get(rule_id, 0)


def _newest_first(row: StandingRuleRow) -> tuple[int, str]:
    return -row["made_at_ms"], row["rule_id"]


def _shown(row: StandingRuleRow, used: int) -> dict[str, object]:
    limited = standing_rule_from_text(row["document"]).uses is not None
    return standing_rule_json(row, used if limited else None)
