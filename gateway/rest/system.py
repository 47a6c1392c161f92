"""Health, readiness, metrics and components."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import resources as r
from gateway.components import stalled
from gateway.identity.doors import check_reads, is_owner
from gateway.kafka_client import KafkaUnreachable
from gateway.problems import Problem
from gateway.rest.documented import answers
from gateway.rest.door import Door, answer, door_of, listed
from gateway.service import Gateway

router = APIRouter(tags=["system"])
AtDoor = Annotated[Door, Depends(door_of)]
# More unread records than this, and what is shown is not what is.
LAG_MAX = 10_000
RECONNECT_S = 2.0


@router.get("/healthz", operation_id="getHealth", response_model=r.Health)
async def healthz() -> Response:
    """The process lives."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    operation_id="getReadiness",
    response_model=r.Health,
    responses={503: {"model": r.Health, "description": "Not ready, and why"}},
)
async def readyz(request: Request) -> Response:
    """The gateway serves: the tail has caught up, commands can be sent and the views can be read."""
    problems = await not_ready(request.app.state.gateway)
    body = {"status": "not ready" if problems else "ready", "problems": problems}
    return JSONResponse(body, 503 if problems else 200)


@router.get("/metrics", operation_id="getMetrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Prometheus metrics. They are the installation's and name no tenant."""
    gateway: Gateway = request.app.state.gateway
    found = gateway.metrics
    if gateway.started:
        live = gateway.gate.live
        found.lag.set(gateway.tail.lag(live.read_through))
        found.waiting.set(len(live.waiters))
        found.open_holds.set(len(live.cache.holds.pinned))
        found.unreadable.set(gateway.tail.unreadable)
        found.forged.set(gateway.tail.forged)
    return Response(found.text(), media_type=CONTENT_TYPE_LATEST)


@router.get(
    "/v1/components",
    operation_id="listComponents",
    responses=answers({200: r.Page[r.Component]}, 403),
)
async def components(door: AtDoor) -> Response:
    """The parts of the installation: the brokers as they answer now, the roles by their own last word.

    Where they are (`pid`, `address`) is shown to an admin of the installation's own tenant; it is null for others.
    """
    check_reads(door.actor)
    gateway = door.gateway
    own = {"lag_records": gateway.tail.lag(door.gate.live.read_through)}
    hidden = {} if is_owner(door.claims) else {"pid": None, "address": None}
    items = [
        {**part, **hidden, **(own if part["name"] == "gateway" else {})}
        for part in await gateway.components.now()
    ]
    return answer(listed(door.gate, items))


async def not_ready(gateway: Gateway) -> list[str]:
    """What keeps a gateway from serving; empty when it serves."""
    if gateway.failure is not None:
        return [str(gateway.failure)]
    if not gateway.caught_up:
        return ["the log is still being read"]
    problems = []
    lag = gateway.tail.lag(gateway.gate.live.read_through)
    if lag > LAG_MAX:
        problems.append(f"{lag} records of the log were not read yet")
    if not await _can_send(gateway):
        problems.append("commands cannot be sent: there is no connection to Kafka")
    problems += await asyncio.to_thread(stalled, gateway.components.directory)
    try:
        await gateway.views.read(lambda moment: moment.positions())
    except Problem as problem:
        problems.append(problem.detail)
    return problems


async def _can_send(gateway: Gateway) -> bool:
    """Whether commands can be sent; a connection that was lost is taken up again."""
    if gateway.commands.connected:
        return True
    try:
        async with asyncio.timeout(RECONNECT_S):
            await gateway.commands.open()
    except (KafkaUnreachable, TimeoutError):
        return False
    return True
