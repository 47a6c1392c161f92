"""Health, readiness, metrics and components."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import resources as r
from gateway.identity.doors import check_reads
from gateway.kafka_client import KafkaConfig, KafkaUnreachable
from gateway.kafka_cluster import broker_addresses
from gateway.problems import Problem
from gateway.rest.documented import answers
from gateway.rest.door import Door, answer, door_of, listed
from gateway.service import Gateway
from schemas.headers import rfc3339
from schemas.status_file import read_status

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
    return Response(found.text(), media_type=CONTENT_TYPE_LATEST)


@router.get(
    "/v1/components",
    operation_id="listComponents",
    responses=answers({200: r.Page[r.Component]}, 403),
)
async def components(door: AtDoor) -> Response:
    """The parts of the installation: the brokers as they answer now, the roles by their own last word."""
    check_reads(door.actor)
    gateway = door.gateway
    roles = await asyncio.to_thread(read_status_files, gateway.settings.data_dir / "run")
    own = {"lag_records": gateway.tail.lag(door.gate.live.read_through)}
    items = [{**role, **own} if role["name"] == "gateway" else role for role in roles]
    return answer(listed(door.gate, [await kafka_component(gateway.commands.config), *items]))


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


async def kafka_component(config: KafkaConfig) -> dict[str, Any]:
    """The brokers of the cluster as one component; their process is not always on this machine."""
    try:
        addresses = await broker_addresses(config)
    except KafkaUnreachable:
        addresses = []
    return {
        "name": "kafka",
        "pid": None,
        "state": "ready" if addresses else "unreachable",
        "address": ",".join(addresses) or config.bootstrap_servers,
        "at": rfc3339(time.time_ns() // 1_000_000),
    }


def read_status_files(directory: Path) -> list[dict[str, Any]]:
    """The components' status files; one that is just being replaced or is none is left out."""
    found = []
    for path in sorted(directory.glob("*.json")):
        status = read_status(path)
        if status is not None and "components" not in status:
            found.append(
                {
                    "name": path.stem,
                    "pid": status.get("pid"),
                    "state": status["state"],
                    "address": status.get("address"),
                    "at": status.get("at"),
                }
            )
    return found
