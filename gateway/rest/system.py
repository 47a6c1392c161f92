"""Health, readiness, metrics and components."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import resources as r
from gateway.identity.authentication import check_reads, is_owner
from gateway.rest.documented import open_operation, operation, refusals
from gateway.rest.parameters import Choice
from gateway.rest.reading_parameters import choice_in
from gateway.rest.request_context import RequestContext, answer, context_of, listed
from gateway.service.current_metrics import update_metrics
from gateway.service.gateway import Gateway
from gateway.service.readiness import all_problems, own_finding

router = APIRouter(tags=["system"])
Context = Annotated[RequestContext, Depends(context_of)]
GATEWAY = "gateway"
PART = Choice(
    "part", f"`{GATEWAY}`: only what this gateway itself needs, for a load balancer.", choices=(GATEWAY,)
)


@router.get("/healthz", operation_id="getHealth", response_model=r.Health, **open_operation())
async def healthz() -> Response:
    """Report that the process is alive."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    operation_id="getReadiness",
    response_model=r.Readiness,
    **open_operation(
        {**refusals(422), 503: {"model": r.Readiness, "description": "Not ready, and why"}},
        parameters=(PART,),
    ),
)
async def readyz(request: Request) -> Response:
    """Report whether the installation can decide: gateway, Kafka, a decider for every partition, and the projector.

    Faults that do not prevent decisions (the trust processor, the notifier, one of several processes) are `warnings`.
    With `part=gateway` only this gateway counts.
    """
    gateway: Gateway = request.app.state.gateway
    if choice_in(request, PART) == GATEWAY:
        found = await own_finding(gateway)
    else:
        found = await all_problems(gateway)
    body = {"status": "not ready" if found.problems else "ready", **found._asdict()}
    return JSONResponse(body, 503 if found.problems else 200)


@router.get(
    "/metrics",
    operation_id="getMetrics",
    response_class=Response,
    **open_operation(
        {
            200: {
                "description": "The text format of Prometheus",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        }
    ),
)
async def metrics(request: Request) -> Response:
    """Get the Prometheus metrics. They are those of the installation and name no tenant."""
    gateway: Gateway = request.app.state.gateway
    update_metrics(gateway)
    return Response(gateway.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get(
    "/v1/components",
    operation_id="listComponents",
    **operation({200: r.Page[r.Component]}),
)
async def components(context: Context) -> Response:
    """List the parts of the installation: the brokers as they answer now, the processes by their heartbeats.

    Their location (`pid`, `host`, `address`, and `reason`, which contains it) is shown to an admin of the
    installation's own tenant; for other callers it is null or empty.
    """
    check_reads(context.actor)
    gateway = context.gateway
    owns = is_owner(context.claims)
    hidden = (
        {} if owns else {"pid": None, "host": None, "address": None, "reason": None, "probe_address": None}
    )
    items = [{**part, **hidden} for part in await gateway.components.now()]
    return answer(listed(context.gate, items))
