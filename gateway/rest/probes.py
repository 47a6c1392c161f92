"""/v1/probes: known-bad calls that an operator plants, and what people answered."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.identity.authentication import check_role
from gateway.operations.plan import Given
from gateway.operations.probes import ROUTE, AgentsAccounts, check_known, plan_open, plan_plant
from gateway.rest.documented import operation
from gateway.rest.parameters import AFTER, CURSOR, LIMIT
from gateway.rest.request_context import RequestContext, context_of
from projections.folds.calls import planted_json
from projections.queries import lists
from projections.queries.accounts import requesters_of
from projections.queries.moment import Moment

router = APIRouter(prefix=ROUTE, tags=["records"])
Context = Annotated[RequestContext, Depends(context_of)]


@router.post(
    "",
    status_code=201,
    operation_id="plantProbe",
    **operation({200: r.Probe, 201: r.Probe}, 409, body=b.PlantProbe, writes=True),
)
async def plant(context: Context) -> Response:
    """Plant a known-bad call, in a run of its own: people are asked about it like about any other. It never runs.

    Refused if nobody would be asked, and if the tool, the agent or its account is not known. The same request again
    answers 200 with the call as it is now.
    """
    given = await context.given()
    await _check_known(context, given)
    return await context.perform(lambda: plan_plant(context.gate, context.claims, given, context.key))


@router.post(
    "/runs",
    status_code=201,
    operation_id="openProbeRun",
    **operation({200: r.Execution, 201: r.Execution}, 409, body=b.PlantProbe, writes=True),
)
async def open_run(context: Context) -> Response:
    """Open the run of a planted call some time before the call, as an agent proposes one after its run has begun.

    Refused as the planting would be. The same body with the run's id, sent to `/v1/probes`, plants the call in it.
    """
    given = await context.given()
    await _check_known(context, given)
    return await context.perform(lambda: plan_open(context.gate, context.claims, given, context.key))


@router.get(
    "", operation_id="listProbes", **operation({200: r.Page[r.Probe]}, parameters=(CURSOR, LIMIT, AFTER))
)
async def list_probes(context: Context) -> Response:
    """List the planted calls, newest first, also those that wait for an answer."""
    check_role(context.actor, "operator", "analyst")
    actor, cursor, limit = context.actor, context.cursor(), context.limit()
    return await context.paged(
        lambda now: lists.planted_calls(now, actor.tenant, actor.project, cursor=cursor, limit=limit),
        planted_json,
    )


async def _check_known(context: RequestContext, given: Given) -> None:
    check_role(context.actor, "operator")
    body, actor = b.read_body(b.PlantProbe, given()), context.actor

    def asked(now: Moment) -> AgentsAccounts:
        place = (actor.tenant, actor.project, body.agent)
        return AgentsAccounts(bool(lists.agent_evidence(now, *place)), requesters_of(now, *place))

    agent, _ = await context.ask_views(asked)
    check_known(context.gate, context.claims, body, agent)
