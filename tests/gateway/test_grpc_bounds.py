"""What one caller of gRPC may take, with a token and without: the others are served meanwhile."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from gateway.problems import Problem
from gateway.rpc.admission import STRANGERS_OF_ADDRESS, WAITS_MAX
from gateway.rpc.decoding import only_message
from gateway.rpc.metadata import address_of
from gateway.rpc.serving import STREAMS_LEAST, serving
from gateway.rpc.settings import RpcSettings, read_rpc_settings
from gateway.rpc.upstream import CONNECTIONS_MAX
from host.errors import SettingsRefused
from ops.options import Limits, UpOptions, settle
from schemas.human_input.v1 import human_input_pb2 as pb
from tests.gateway.rpc_gateway import Client, Code, Metadata, client_of, ended, rpc_site

# More than gRPC could serve at once for all callers together.
MANY = 2_100
# The setting of HTTP/2.
MAX_CONCURRENT_STREAMS = 3
WATCH = pb.WatchHumanInputRequest(task_id="t")
HEALTH = health_pb2.HealthCheckRequest()
RUN = pb.RunRequest(prompt="?")


async def begun(stream: Any) -> Any:
    """The first answer of a stream, or its refusal."""
    try:
        return await stream.read()
    except grpc.aio.AioRpcError as error:
        return error.code(), dict(error.trailing_metadata() or ()).get("placet-code")


async def runs(client: Client, metadata: Metadata) -> None:
    """A call is answered in time."""
    assert (await client.tool.Run(RUN, metadata=metadata, timeout=10)).task_id == "t"


async def checked(client: Client) -> None:
    """The health is told in time, and is good: the gateway is ready."""
    async with asyncio.timeout(10):
        while True:
            found = await client.health.Check(HEALTH)
            if found.status == health_pb2.HealthCheckResponse.SERVING:
                return
            await asyncio.sleep(0.1)


def watching(client: Client) -> Any:
    return client.health.Watch(HEALTH)


def reflecting(client: Client) -> Any:
    async def once() -> Any:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        await asyncio.Event().wait()

    return client.reflection.ServerReflectionInfo(once())


@pytest.mark.parametrize("opened", [watching, reflecting])
async def test_case_30_streams_that_need_no_token_take_nothing_from_callers_with_one(
    tmp_path: Path, opened: Any
) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as stranger, client_of(site) as client:
        streams = [opened(stranger) for _ in range(MANY)]
        first = await asyncio.gather(*(begun(stream) for stream in streams))
        assert sum(not isinstance(one, tuple) for one in first) == STRANGERS_OF_ADDRESS
        # HTTP/2 itself refuses some of so many that come at once on one connection.
        assert (Code.RESOURCE_EXHAUSTED, "quota") in first
        assert {one[1] for one in first if isinstance(one, tuple)} <= {"quota", None}
        await runs(client, site.by("bot"))
        await checked(client)
        for stream in streams:
            stream.cancel()
        async with asyncio.timeout(10):
            while isinstance(await begun(opened(client)), tuple):
                await asyncio.sleep(0.05)


async def test_case_30_calls_whose_message_never_comes_take_nothing_from_others(tmp_path: Path) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as stranger, client_of(site) as client:
        method = stranger.channel.stream_unary(
            "/placet.human_input.v1.HumanInputTool/Run", request_serializer=pb.RunRequest.SerializeToString
        )

        async def never() -> Any:
            await asyncio.Event().wait()
            yield RUN

        silent = [method(never(), metadata=site.by("bot")) for _ in range(MANY)]
        over = [call for call in silent if not call.done()]
        async with asyncio.timeout(30):
            while sum(not call.done() for call in over) > 100:
                await asyncio.sleep(0.05)
        await runs(client, site.by("rival"))
        for call in silent:
            call.cancel()


async def test_message_that_does_not_come_is_not_waited_for() -> None:
    silent: Any = SimpleNamespace(read=asyncio.Event().wait)
    with pytest.raises(Problem, match=r"has not come within 0\.01 s"):
        await only_message(silent, 0.01)


async def test_one_token_is_one_caller_however_it_is_written(tmp_path: Path) -> None:
    async with rpc_site(tmp_path, verifies=False, calls_at_once=2) as site, client_of(site) as client:
        [(name, value)] = site.by("bot")
        token = value.removeprefix("Bearer ")
        await runs(client, ((name, value),))
        forms = (f"Bearer {token}", f"BEARER {token}", f"bearer   {token} ", f" Bearer {token}")
        watches = [client.tasks.WatchHumanInput(WATCH, metadata=((name, form),)) for form in forms]
        first = await asyncio.gather(*(begun(one) for one in watches))
        assert first.count((Code.RESOURCE_EXHAUSTED, "quota")) == 2


async def test_case_30_streams_of_one_subject_leave_others_theirs_and_health(tmp_path: Path) -> None:
    async with rpc_site(tmp_path, calls_at_once=20) as site, client_of(site) as client:
        mine = site.by("bot")
        streams = [client.tasks.WatchHumanInput(WATCH, metadata=mine) for _ in range(50)]
        first = await asyncio.gather(*(begun(stream) for stream in streams))
        assert first.count((Code.RESOURCE_EXHAUSTED, "quota")) == 30
        # Another token of the same subject changes nothing, and a call that does not wait counts as well.
        again = client.tool.Run(RUN, metadata=site.by("bot"))
        code, detail, own = await ended(again)
        assert (code, own) == (Code.RESOURCE_EXHAUSTED, "quota")
        assert detail == "quota: 20 calls of this subject are open: end some"
        await runs(client, site.by("rival"))
        await runs(client, site.by("bot", "other"))
        await checked(client)
        for stream in streams:
            stream.cancel()
        async with asyncio.timeout(10):
            while await client.tool.Run(RUN, metadata=mine).code() is not Code.OK:
                await asyncio.sleep(0.05)


async def test_case_30_calls_that_wait_leave_connections_for_those_that_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WAITS_MAX < CONNECTIONS_MAX
    monkeypatch.setattr("gateway.rpc.admission.WAITS_MAX", 15)
    monkeypatch.setattr("gateway.rpc.upstream.CONNECTIONS_MAX", 16)
    async with rpc_site(tmp_path) as site, client_of(site) as client:

        async def refusals(tenant: str) -> int:
            watches = [
                client.tasks.WatchHumanInput(WATCH, metadata=site.by(f"s{number}", tenant))
                for number in range(12)
            ]
            opened.extend(watches)
            first = await asyncio.gather(*(begun(one) for one in watches))
            return first.count((Code.RESOURCE_EXHAUSTED, "quota"))

        opened: list[Any] = []
        # Each takes half of what is free, of 15; the fourth takes the last.
        assert [await refusals(tenant) for tenant in ("acme", "other", "third", "fourth")] == [4, 8, 10, 11]
        waiting = pb.GetHumanInputRequest(task_id="t", wait_seconds=30)
        code, _, own = await ended(client.tasks.GetHumanInput(waiting, metadata=site.by("x", "fifth")))
        assert (code, own) == (Code.RESOURCE_EXHAUSTED, "quota")
        for tenant in ("acme", "fifth"):
            await runs(client, site.by("x", tenant))
            now = pb.GetHumanInputRequest(task_id="t")
            answer = await client.tasks.GetHumanInput(now, metadata=site.by("x", tenant), timeout=10)
            assert answer.status == "waiting_for_human"
        await checked(client)
        for one in opened:
            one.cancel()


@pytest.mark.parametrize("verifies", [True, False])
async def test_case_30_invalid_tokens_are_refused_by_address_and_valid_ones_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verifies: bool
) -> None:
    # 200 at once as by default, and then so few that they do not come while the test looks.
    monkeypatch.setattr("gateway.rpc.callers.FAILURES_PER_S", 0.2)
    monkeypatch.setattr("gateway.rpc.callers.FAILURES_BURST_S", 1_000.0)
    async with rpc_site(tmp_path, verifies=verifies) as site, client_of(site) as client:
        mine = site.by("bot")
        await runs(client, mine)
        codes = []
        for number in range(400):
            invalid = (("authorization", f"Bearer invalid-{number}"),)
            code, _, own = await ended(client.tool.Run(RUN, metadata=invalid))
            codes.append((code, own))
        refused = codes.count((Code.RESOURCE_EXHAUSTED, "quota"))
        assert refused > 100
        assert refused + codes.count((Code.UNAUTHENTICATED, "unauthenticated")) == 400
        # The gateway counts the failures of an address, and this role has one: it permits 200 at once.
        assert site.gateway.asked["invalid"] <= (0 if verifies else 150)
        await runs(client, mine)
        code, detail, own = await ended(client.tool.Run(RUN, metadata=site.by("new")))
        assert (code, own) == (Code.RESOURCE_EXHAUSTED, "quota")
        assert detail == "quota: too many calls from this address had no valid token"


async def test_watch_asks_no_more_often_than_once_a_second(tmp_path: Path) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        watch = client.tasks.WatchHumanInput(WATCH, metadata=site.by("bot"), timeout=1.5)
        assert (await watch.read()).status == "waiting_for_human"
        assert await watch.code() is Code.DEADLINE_EXCEEDED
        # At the beginning, until shortly before the deadline, and once in what is left.
        assert site.gateway.asked["/v1/human-input/t"] <= 3
        # A gateway that stops answers at once.
        site.gateway.asked.clear()
        site.gateway.waits = False
        watch = client.tasks.WatchHumanInput(WATCH, metadata=site.by("bot"), timeout=2.5)
        assert await watch.code() is Code.DEADLINE_EXCEEDED
        assert site.gateway.asked["/v1/human-input/t"] <= 4


IDS = ("", "h/view", "../holds", "groups/", "a?b", "a b", "x" * 129)


@pytest.mark.parametrize("wrong", IDS)
async def test_id_that_is_none_reaches_no_route(tmp_path: Path, wrong: str) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        mine, tasks = site.by("bot"), client.tasks
        calls = [
            tasks.GetHumanInput(pb.GetHumanInputRequest(task_id=wrong), metadata=mine),
            tasks.WatchHumanInput(pb.WatchHumanInputRequest(task_id=wrong), metadata=mine),
            tasks.ProvideHumanInput(pb.ProvideHumanInputRequest(task_id=wrong, hold_id="h"), metadata=mine),
        ]
        if wrong:
            request = pb.ProvideHumanInputRequest(task_id="t", hold_id=wrong)
            calls.append(tasks.ProvideHumanInput(request, metadata=mine))
        for call in calls:
            code, detail, own = await ended(call)
            assert (code, own) == (Code.INVALID_ARGUMENT, "invalid")
            assert "must be 1 to 128 of" in detail
        assert site.gateway.asked.total() == 0


async def test_hold_of_no_request_is_not_of_this_task(tmp_path: Path) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        site.gateway.hold = {"hold_id": "h", "call_id": "c"}
        request = pb.ProvideHumanInputRequest(task_id="t", hold_id="h")
        code, _, own = await ended(client.tasks.ProvideHumanInput(request, metadata=site.by("bot")))
        assert (code, own) == (Code.NOT_FOUND, "not_found")


async def test_unexpected_error_is_internal_and_tells_nothing_of_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        # An answer that no gateway gives.
        site.gateway.hold = {"request_id": "t"}
        request = pb.ProvideHumanInputRequest(task_id="t", hold_id="h")
        code, detail, own = await ended(client.tasks.ProvideHumanInput(request, metadata=site.by("bot")))
        assert (code, own) == (Code.INTERNAL, "internal")
        assert detail == "internal: something unexpected went wrong; it was logged"
        assert "KeyError" in caplog.text


def test_limit_of_a_subject_comes_from_the_stack_s_settings(tmp_path: Path) -> None:
    config = settle(UpOptions(tmp_path, 0, limits=Limits(grpc_calls_at_once=7)), "127.0.0.1:9092")
    settings = read_rpc_settings(config.settings_for("grpc"))
    assert settings.calls_at_once == 7
    assert settings.issuers == tmp_path / "keys" / "issuers.json"
    with pytest.raises(SettingsRefused, match="1 or more"):
        read_rpc_settings(config.settings_for("grpc") | {"grpc_calls_at_once": "0"})


async def test_metadata_is_refused_by_its_size_and_never_by_chance(tmp_path: Path) -> None:
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        mine = site.by("bot")
        for _ in range(50):
            await runs(client, (*mine, ("other", "x" * 14_000)))
        code, _, own = await ended(client.tool.Run(RUN, metadata=(*mine, ("other", "x" * 17_000))))
        assert (code, own) == (Code.RESOURCE_EXHAUSTED, "")


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.1:50000", "192.0.2.1"),
        ("ipv6:%5B2001:db8:1:2:3::1%5D:50000", "2001:db8:1:2::/64"),
        ("ipv6:[::ffff:192.0.2.1]:50000", "192.0.2.1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:50000", "fe80::/64"),
        ("unix:/run/placet.sock", "unix"),
    ],
)
def test_address_of_a_peer_is_without_its_port(peer: str, address: str) -> None:
    assert address_of(peer) == address


@asynccontextmanager
async def connected(address: str, connections: int) -> AsyncIterator[list[dict[int, int] | None]]:
    """Several connections; yields the settings of HTTP/2 that each is sent, None for one that is closed instead."""
    host, _, port = address.rpartition(":")
    async with AsyncExitStack() as opened:
        found: list[dict[int, int] | None] = []
        for _ in range(connections):
            reader, writer = await asyncio.open_connection(host, int(port))
            opened.callback(writer.close)
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
            try:
                length = int.from_bytes((await reader.readexactly(9))[:3], "big")
                found.append(dict(struct.iter_unpack(">HI", await reader.readexactly(length))))
            except (asyncio.IncompleteReadError, ConnectionError):
                found.append(None)
        yield found


@pytest.mark.parametrize(("calls", "streams"), [(100, STREAMS_LEAST), (1_000, 2_000)])
async def test_connection_can_have_as_many_streams_as_a_subject_may_and_some_more(
    calls: int, streams: int
) -> None:
    """So a client that resets its streams at once is refused by HTTP/2 itself, long before Python knows of them."""
    settings = RpcSettings("http://127.0.0.1:9", "127.0.0.1", 0, calls_at_once=calls)
    async with serving(settings) as address, connected(address, 1) as found:
        assert found[0] is not None
        assert found[0][MAX_CONCURRENT_STREAMS] == streams


async def test_connections_beyond_the_most_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.rpc.serving.CONNECTIONS_MAX", 3)
    settings = RpcSettings("http://127.0.0.1:9", "127.0.0.1", 0)
    async with serving(settings) as address, connected(address, 5) as found:
        assert [one is None for one in found] == [False, False, False, True, True]


@pytest.mark.parametrize("name", ["x" * 20_000, "Ж" * 4_000], ids=["Latin", "Cyrillic"])
async def test_case_30_refusal_that_quotes_a_long_name_keeps_its_status_and_code(
    tmp_path: Path, name: str
) -> None:
    """More metadata than a client takes: it would tell RESOURCE_EXHAUSTED, and nothing of what was said."""
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        request = pb.RunToolRequest(name=name)
        site.gateway.refuses = {
            "code": "invalid",
            "detail": f"arguments.{name}: this field is unknown; remove it",
        }
        code, detail, own = await ended(client.tasks.RunTool(request, metadata=site.by("bot"), timeout=10))
    assert (code, own) == (Code.INVALID_ARGUMENT, "invalid")
    assert detail.startswith(f"invalid: arguments.{name[0]}")
