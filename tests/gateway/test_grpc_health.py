"""The health service of gRPC: what it tells, and that asking it writes nothing into the log."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, cast

import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from gateway.rpc.health import Health
from gateway.rpc.serving import SERVICES
from schemas.human_input.v1 import human_input_pb2 as pb
from tests.gateway.rpc_gateway import Code, client_of, ended, rpc_site

States = health_pb2.HealthCheckResponse
# The stubs of its types do not know it.
LIST = cast(Any, health_pb2).HealthListRequest()
WITHIN_S = 20.0
NAMES = {"", *SERVICES}


async def test_list_has_the_states_of_all_services(tmp_path: Path) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as client, asyncio.timeout(WITHIN_S):
        watching = client.health.Watch(health_pb2.HealthCheckRequest())
        while (await watching.read()).status != States.SERVING:
            pass
        listed = (await client.health.List(LIST)).statuses
        assert {name: listed[name].status for name in listed} == dict.fromkeys(NAMES, States.SERVING)
        for name in NAMES:
            assert (
                await client.health.Check(health_pb2.HealthCheckRequest(service=name))
            ).status == States.SERVING


async def test_service_that_does_not_exist_is_not_found_and_watched_as_unknown(tmp_path: Path) -> None:
    other = health_pb2.HealthCheckRequest(service="other")
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        code, _, _ = await ended(client.health.Check(other))
        assert code is Code.NOT_FOUND
        assert (await client.health.Watch(other).read()).status == States.SERVICE_UNKNOWN


async def next_state(watching: Any) -> Any:
    async with asyncio.timeout(WITHIN_S):
        return (await anext(watching)).status


async def test_watcher_is_told_every_change_also_beside_one_that_takes_nothing() -> None:
    health, context = Health(SERVICES), cast(Any, None)
    request = health_pb2.HealthCheckRequest(service=SERVICES[0])
    idle, watching = (health.Watch(request, context) for _ in range(2))
    assert await next_state(idle) == await next_state(watching) == States.NOT_SERVING
    for is_ready in (True, False):
        health.tell(is_ready=is_ready)
        health.tell(is_ready=is_ready)
        assert await next_state(watching) == (States.SERVING if is_ready else States.NOT_SERVING)
    listed = await health.List(LIST, context)
    assert {state.status for state in listed.statuses.values()} == {States.NOT_SERVING}


async def test_calls_without_a_token_write_nothing_into_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody could fill the disk."""
    extension = reflection_pb2.ExtensionRequest
    questions: list[dict[str, Any]] = [
        {"file_by_filename": "../x"},
        {"file_containing_symbol": "\0" * 5_000},
        {"file_containing_symbol": ""},
        {"file_containing_extension": extension(containing_type="x", extension_number=-5)},
        {
            "file_containing_extension": extension(
                containing_type="google.protobuf.FieldOptions", extension_number=-(2**31)
            )
        },
        {"all_extension_numbers_of_type": "placet.human_input.v1.RunRequest"},
        {"all_extension_numbers_of_type": SERVICES[0]},
        {},
    ]
    with caplog.at_level(logging.INFO):
        async with rpc_site(tmp_path) as site, client_of(site) as client:
            for question in questions:
                request = reflection_pb2.ServerReflectionRequest(**question)
                call = client.reflection.ServerReflectionInfo(iter([request]), timeout=WITHIN_S)
                assert isinstance(await call.read(), reflection_pb2.ServerReflectionResponse), question
            for method in ("Check", "List", "Watch", "Nope"):
                call = client.channel.unary_unary(f"/grpc.health.v1.Health/{method}")(
                    b"\xff", timeout=WITHIN_S
                )
                assert (await ended(call))[0] in (Code.INVALID_ARGUMENT, Code.UNIMPLEMENTED), method
            assert (await ended(client.health.List(LIST, timeout=WITHIN_S)))[0] is Code.OK
            for service in (*SERVICES, "no.Service"):
                call = client.channel.unary_unary(f"/{service}/Nope")(b"", timeout=WITHIN_S)
                assert (await ended(call))[0] is Code.UNIMPLEMENTED
            for said in ("", "Bearer x", "Bearer a.b.c"):
                metadata = (("authorization", said),) if said else ()
                call = client.tool.Run(pb.RunRequest(prompt="?"), metadata=metadata, timeout=WITHIN_S)
                assert (await ended(call))[0] is Code.UNAUTHENTICATED
    assert [record for record in caplog.records if record.name != "aiohttp.access"] == []
