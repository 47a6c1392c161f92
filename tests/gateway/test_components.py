"""What runs: looked up once for many who ask, and shown in full only to who owns the installation."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway import resources as r
from gateway.components import KEPT_S, Components, read_status_files
from gateway.identity.issuer import issue
from gateway.live.heartbeats import LatestHeartbeats
from log.kafka.client import KafkaSettings
from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for
from vitals.heartbeat import SILENT, Heartbeat
from vitals.status_file import STALLED, write_status


@dataclass
class HangsUp:
    """Where a broker should be: counts who connects, and hangs up when it is told to."""

    address: str = ""
    connections: int = 0
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.came.set()
        await self.may_end.wait()
        writer.close()


@asynccontextmanager
async def hanging_up() -> AsyncIterator[HangsUp]:
    found = HangsUp()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    async with server:
        found.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield found
        found.may_end.set()


async def connections_of_one(directory: Path) -> int:
    """How often one look-up connects."""
    async with hanging_up() as broker:
        broker.may_end.set()
        (kafka,) = await Components(KafkaSettings(broker.address), directory).now()
        assert kafka["state"] == "unreachable"
        return broker.connections


async def test_now_asked_by_many_at_once_is_looked_up_once(tmp_path: Path) -> None:
    once = await connections_of_one(tmp_path)
    assert once > 0
    async with hanging_up() as broker:
        components = Components(KafkaSettings(broker.address), tmp_path)
        asking = [asyncio.create_task(components.now()) for _ in range(30)]
        await broker.came.wait()
        broker.may_end.set()
        found = await asyncio.gather(*asking)
        assert broker.connections == once
    assert all(one == found[0] for one in found)


async def test_now_asked_again_is_the_same_for_a_second_and_then_looked_up_anew(tmp_path: Path) -> None:
    once = await connections_of_one(tmp_path)
    now = [100.0]
    async with hanging_up() as broker:
        broker.may_end.set()
        components = Components(KafkaSettings(broker.address), tmp_path, clock=lambda: now[0])
        await components.now()
        write_status(tmp_path / "decider.json", "ready")
        now[0] += KEPT_S * 0.9
        assert [part["name"] for part in await components.now()] == ["kafka"]
        assert broker.connections == once
        now[0] += KEPT_S * 0.2
        assert [part["name"] for part in await components.now()] == ["kafka", "decider"]
        assert broker.connections == 2 * once


async def test_now_whose_first_asker_goes_away_still_answers_the_others(tmp_path: Path) -> None:
    async with hanging_up() as broker:
        components = Components(KafkaSettings(broker.address), tmp_path)
        first, second = (asyncio.create_task(components.now()) for _ in range(2))
        await broker.came.wait()
        first.cancel()
        broker.may_end.set()
        assert [part["name"] for part in await second] == ["kafka"]
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_now_tells_how_many_partitions_the_executions_have(tmp_path: Path) -> None:
    async with hanging_up() as broker:
        broker.may_end.set()
        write_status(tmp_path / "decider.json", "ready")
        found = await Components(KafkaSettings(broker.address), tmp_path, partitions=4).now()
    assert [part["partitions"] for part in found] == [4, None]


async def test_now_after_a_look_up_that_failed_looks_anew_at_once(tmp_path: Path) -> None:
    async with hanging_up() as broker:
        broker.may_end.set()
        components = Components(KafkaSettings(broker.address, {"no_such_setting": 1}), tmp_path)
        for _ in range(2):
            with pytest.raises(TypeError, match="no_such_setting"):
                await components.now()
        components.config = KafkaSettings(broker.address)
        assert [part["name"] for part in await components.now()] == ["kafka"]


async def test_now_gives_each_asker_a_list_of_its_own(tmp_path: Path) -> None:
    async with hanging_up() as broker:
        broker.may_end.set()
        components = Components(KafkaSettings(broker.address), tmp_path)
        (mine,) = await components.now()
        mine["address"] = None
        (theirs,) = await components.now()
    assert theirs["address"] == broker.address


def _parts(caller: Caller) -> dict[str, dict[str, Any]]:
    items = caller.get("/v1/components").json()["items"]
    for item in items:
        r.Component.model_validate(item)
    return {item["name"]: item for item in items}


@pytest.mark.stack
@pytest.mark.broker
def test_components_for_who_owns_the_installation_say_where_each_part_is(doors: Doors) -> None:
    # The installation's owner is an admin of its own tenant as a whole, not of one of its projects.
    token = issue(doors.stack.data_dir / "keys", "root", ["admin"], "default", "*")
    parts = _parts(Caller(doors.url, token, doors.client))
    assert parts.keys() == {"kafka", "decider", "projector", "gateway", "trust", "grpc"}
    assert {part["state"] for part in parts.values()} == {"ready"}
    assert all(part["at"].endswith("Z") for part in parts.values())
    assert parts["kafka"]["address"] == doors.stack.status()["bootstrap_servers"]
    assert parts["decider"]["pid"] == doors.stack.pid("decider")


@pytest.mark.stack
@pytest.mark.broker
@pytest.mark.parametrize(
    ("role", "tenant"),
    [
        ("admin", "acme"),
        ("operator", "acme"),
        ("reviewer", "acme"),
        ("operator", "default"),
        ("admin", "default"),
    ],
)
def test_components_for_others_are_names_and_states_and_no_addresses(
    doors: Doors, role: str, tenant: str
) -> None:
    parts = _parts(doors.caller("ann", role, tenant=tenant))
    assert parts.keys() == {"kafka", "decider", "projector", "gateway", "trust", "grpc"}
    assert {part["state"] for part in parts.values()} == {"ready"}
    assert {(part["pid"], part["address"]) for part in parts.values()} == {(None, None)}


@pytest.mark.stack
@pytest.mark.broker
def test_components_asked_often_are_one_answer_and_never_an_old_one(doors: Doors) -> None:
    caller = doors.caller("ann", "reviewer")
    seen = [_parts(caller)["kafka"]["at"] for _ in range(20)]
    assert len(set(seen)) < len(seen)
    wait_for(lambda: _parts(caller)["kafka"]["at"], lambda at: at > seen[-1])


def test_role_that_does_not_do_its_work_is_stalled_and_says_why(tmp_path: Path) -> None:
    wrong = "the broker's clock is 180 min ahead of this decider's"
    write_status(tmp_path / "decider.json", "ready", reason=wrong)
    write_status(tmp_path / "projector.json", "ready")

    decider, projector = read_status_files(tmp_path)

    assert (decider.state, projector.state) == (STALLED, "ready")
    assert decider.fault().endswith(wrong)
    assert projector.fault() == ""


async def test_process_that_was_heard_of_long_ago_is_shown_by_its_own_word_or_as_silent(
    tmp_path: Path,
) -> None:
    now = [100.0]
    heartbeats = LatestHeartbeats(clock=lambda: now[0])
    for name in ("decider", "far"):
        heartbeats.record(Heartbeat("decider", name, socket.gethostname(), 7, "ready"))
    now[0] += 30.0
    mine: dict[str, Any] = {
        "role": "decider",
        "name": "decider",
        "host": socket.gethostname(),
        "kafka_age_ms": 30_000,
    }
    write_status(tmp_path / "decider.json", "ready", **mine)
    async with hanging_up() as broker:
        broker.may_end.set()
        kafka, decider, far = await Components(KafkaSettings(broker.address), tmp_path, heartbeats).now()

    assert (kafka["state"], decider["state"], far["state"]) == ("unreachable", STALLED, SILENT)
    assert "Kafka has not answered for 30.0 s" in decider["reason"]
    assert "has been silent for 30.0 s" in far["reason"]
    # Readiness blames Kafka, not whoever cannot be heartbeats without it.
    assert heartbeats.examine(1, 30.0).problems == ["Kafka has not answered for 30.0 s"]
