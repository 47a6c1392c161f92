"""The PostgreSQL of a running stack is frozen: what needs the vault is refused in time, and a gateway ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import httpx
import pytest

from ops import process
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sealed import DEFINITION, PLAIN, TOOL, consumed, decided, path_of, proposed, values_of
from tests.servers.postgres import frozen_postgres
from tests.servers.stack import running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.postgres]

# The gateway's own limits are 5 s and, for the views, 10 s; the rest is for a busy machine.
REFUSED_WITHIN_S = 8.0
READ_WITHIN_S = 13.0
ENDED_WITHIN_S = 5.0 + 1.0
# Several times as long as the vault waits for a connection.
STARTING_FOR_S = 12.0


@pytest.fixture(scope="module")
def doors(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    url = f"{postgres_url}?schema=s{uuid4().hex[:8]}"
    with pytest.MonkeyPatch.context() as patch, httpx.Client(timeout=60) as client:
        patch.setenv("DATABASE_URL", url)
        with running_stack(tmp_path_factory.mktemp("frozen"), "--partitions", "1") as stack:
            found = Doors(stack, stack.status()["url"], client)
            found.publish("acme")
            olga = found.caller("olga", "operator")
            assert olga.call("PUT", f"/v1/tools/{TOOL}", DEFINITION).status_code == 200
            yield found


@pytest.fixture
def bot(doors: Doors) -> Caller:
    return doors.caller("bot", "agent", agent="billing")


def propose(bot: Caller, execution_id: str) -> tuple[httpx.Response, float]:
    since = time.monotonic()
    body = {"call_id": f"c-{uuid4().hex[:12]}", "tool": TOOL, "arguments": PLAIN}
    answer = bot.post(f"/v1/executions/{execution_id}/tool-calls?wait=0", body)
    return answer, time.monotonic() - since


def test_case_39_sensitive_values_are_refused_in_time_while_their_database_is_frozen(
    doors: Doors, bot: Caller, postgres_url: str
) -> None:
    anna, execution_id, attempt = doors.caller("anna", "reviewer"), bot.execution(), uuid4().hex
    call = proposed(bot)
    assert decided(anna, call).status_code == 200

    with frozen_postgres(postgres_url), ThreadPoolExecutor(6) as agents:
        asked = [agents.submit(propose, bot, execution_id) for _ in range(6)]
        since = time.monotonic()
        taken = consumed(bot, call, attempt)
        assert time.monotonic() - since < REFUSED_WITHIN_S
        answers = [one.result() for one in asked]
        # Nothing else waits for the vault.
        assert bot.execution()

    assert {answer.status_code for answer, _ in answers} | {taken.status_code} == {503}
    assert {answer.json()["code"] for answer, _ in answers} | {taken.json()["code"]} == {"unavailable"}
    assert all("retry-after" in answer.headers for answer, _ in answers)
    assert "retry-after" in taken.headers
    assert max(waited for _, waited in answers) < REFUSED_WITHIN_S
    # Whoever was refused has used nothing up.
    assert bot.get(path_of(call)).json()["status"] == "released"
    assert values_of(consumed(bot, call, attempt))["/token"] == PLAIN["token"]
    wait_for(lambda: propose(bot, execution_id)[0].status_code, lambda code: code in (200, 202))


def test_readers_of_one_subject_are_refused_in_time_while_the_views_are_frozen(
    doors: Doors, postgres_url: str
) -> None:
    olga = replace(doors.caller("olga", "operator"), client=httpx.Client(timeout=60))

    def read(path: str) -> tuple[int, float]:
        since = time.monotonic()
        return olga.get(path).status_code, time.monotonic() - since

    paths = [*["/v1/holds?limit=5"] * 3, *["/v1/executions?limit=5"] * 3]
    with olga.client, frozen_postgres(postgres_url), ThreadPoolExecutor(6) as readers:
        answers = list(readers.map(read, paths))
    assert {status for status, _ in answers} == {503}
    assert max(waited for _, waited in answers) < READ_WITHIN_S
    doors.stack.wait_ready()


def test_gateway_ends_in_time_and_is_started_again_while_the_database_is_frozen(
    doors: Doors, bot: Caller, postgres_url: str
) -> None:
    execution_id, gateway = bot.execution(), doors.stack.pid("gateway")
    reader = replace(bot, client=httpx.Client(timeout=60))
    waiting: list[Future[httpx.Response]] = []
    with reader.client, ThreadPoolExecutor(8) as agents:
        with frozen_postgres(postgres_url):
            waiting += [agents.submit(lambda: propose(bot, execution_id)[0]) for _ in range(4)]
            waiting += [agents.submit(reader.get, "/v1/executions?limit=5") for _ in range(4)]
            time.sleep(0.5)
            since = time.monotonic()
            os.kill(gateway, signal.SIGTERM)
            wait_for(lambda: process.is_alive(gateway), lambda alive: not alive)
            assert time.monotonic() - since < ENDED_WITHIN_S
            assert {one.result().status_code for one in waiting} == {503}
            wait_for(lambda: doors.stack.components()["gateway"]["restarts"], lambda count: count >= 1)
        doors.stack.wait_ready()
    wait_for(lambda: propose(bot, execution_id)[0].status_code, lambda code: code in (200, 202))


def listens(url: str) -> bool:
    try:
        httpx.get(url, timeout=REFUSED_WITHIN_S)
    except httpx.ConnectError:
        return False
    return True


def test_gateway_started_while_the_database_is_frozen_waits_for_it_and_serves_after_the_thaw(
    doors: Doors, bot: Caller, postgres_url: str
) -> None:
    before = doors.stack.components()["gateway"]
    with frozen_postgres(postgres_url):
        os.kill(before["pid"], signal.SIGTERM)
        wait_for(lambda: doors.stack.components()["gateway"]["restarts"], before["restarts"].__lt__)
        started = doors.stack.components()["gateway"]
        asked = f"{doors.url}/readyz"
        wait_for(lambda: listens(asked), bool)
        # Once it listens, it goes on.
        until = time.monotonic() + STARTING_FOR_S
        answers = []
        while time.monotonic() < until:
            answers.append(httpx.get(asked, timeout=REFUSED_WITHIN_S))
            time.sleep(0.2)
        assert {answer.status_code for answer in answers} == {503}
        own = httpx.get(f"{asked}?part=gateway", timeout=REFUSED_WITHIN_S).json()["problems"]
        assert own == ["the vault is being opened: its database has not answered yet"]
        answers.append(
            wait_for(
                lambda: httpx.get(asked, timeout=REFUSED_WITHIN_S),
                lambda answer: own[0] in answer.json()["problems"],
            )
        )
        told = [problem for answer in answers for problem in answer.json()["problems"]]
        assert not [problem for problem in told if problem.startswith("Kafka has not answered for")]
        # The supervisor asks it from time to time.
        now = wait_for(lambda: doors.stack.components()["gateway"], lambda now: now["reason"] == own[0])
        assert (now["pid"], now["restarts"], now["state"]) == (
            started["pid"],
            started["restarts"],
            "starting",
        )
        assert own[0] in doors.stack.status()["message"]
    doors.stack.wait_ready()
    assert doors.stack.components()["gateway"]["pid"] == started["pid"]
    wait_for(lambda: propose(bot, bot.execution())[0].status_code, lambda code: code in (200, 202))
