"""Variables that an agent asks for: answered sealed, taken by one attempt, erased; and the client that does it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from placet import AsyncTurn, Placet
from placet.cli.app import app
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, decide, open_hold
from tests.gateway.sealed import (
    DEFINITION,
    TOOL,
    answered,
    asked,
    proposed,
    refused,
    taken,
    values_of,
)
from tests.gateway.test_chat_live import serving
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture
def olga(doors: Doors) -> Caller:
    return doors.caller("olga", "operator")


@pytest.fixture(scope="module", autouse=True)
def _published(doors: Doors) -> None:
    for tenant in ("acme", "vaulted"):
        olga = doors.caller("olga", "operator", tenant=tenant)
        assert olga.call("PUT", f"/v1/tools/{TOOL}", DEFINITION).status_code == 200


def test_variables_are_answered_sealed_and_taken_by_one_attempt(bot: Caller, anna: Caller) -> None:
    request = asked(bot, "API_KEY", "API_URL")
    assert refused(taken(bot, request)) == (409, "not_released")

    done = answered(anna, request, {"API_KEY": "hunter2-key", "API_URL": "https://hunter2"})

    assert done.status_code == 200, done.text
    shown = bot.get(f"/v1/requests/{request['request_id']}")
    assert set(shown.json()["response"]) == {"API_KEY", "API_URL"}
    assert "hunter2" not in done.text + shown.text
    expected = {"/API_KEY": "hunter2-key", "/API_URL": "https://hunter2"}
    assert values_of(taken(bot, request)) == expected
    assert values_of(taken(bot, request)) == expected
    assert refused(taken(bot, request, "another")) == (409, "already_consumed")
    assert refused(taken(anna, request)) == (403, "not_authorised")


@pytest.mark.parametrize("value", ["hunter2", {"API_KEY": 17_171_717}, {"OTHER": "hunter2"}, None, {}])
def test_variables_answered_with_anything_else_are_refused_without_being_quoted(
    bot: Caller, anna: Caller, value: Any
) -> None:
    request = asked(bot, "API_KEY")

    answer = answered(anna, request, value)

    assert refused(answer) == (422, "invalid_arguments")
    assert "hunter2" not in answer.text
    assert "17171717" not in answer.text


def test_variables_too_long_for_their_patterns_are_refused_at_once(bot: Caller, anna: Caller) -> None:
    """A pattern is the agent's: without a bound one answer would stop the gateway for a minute."""
    slow = "(.?.?.?.?){25}b"
    field = {"name": "API_KEY", "pattern": slow}
    body = {"question": "Key?", "kind": "env_var", "fields": [field]}
    request = bot.post("/v1/requests", body).json()

    answer = answered(anna, request, {"API_KEY": "a" * 250_000})

    assert refused(answer) == (422, "invalid_arguments")
    assert "too long to be matched" in answer.json()["detail"]
    assert answered(anna, request, {"API_KEY": "a" * 10_000 + "b"}).status_code == 200

    too_large = {**body, "fields": [{**field, "pattern": "(.?.?.?.?){300}b"}]}
    assert refused(bot.post("/v1/requests", too_large)) == (422, "invalid")


def test_variables_are_not_named_to_a_token_that_may_not_see_the_request(bot: Caller, doors: Doors) -> None:
    server, request = doors.caller("bank", "tool:another"), asked(bot, "API_KEY")
    assert refused(server.get(f"/v1/holds/{request['hold_id']}")) == (403, "not_authorised")

    for value, decision in ((None, "respond"), ({"API_KEY": "mine"}, "respond"), ("mine", "reject")):
        answer = answered(server, request, value, decision)
        assert refused(answer) == (403, "not_authorised"), (decision, value, answer.text)
        assert "API_KEY" not in answer.text


@pytest.mark.parametrize("more", [{"default": {"API_KEY": "hunter2"}}, {"options": ["hunter2"]}])
def test_variables_asked_for_with_values_at_hand_are_refused(bot: Caller, more: dict[str, Any]) -> None:
    body = {"question": "Key?", "kind": "env_var", "fields": ["API_KEY"], **more}

    assert refused(bot.post("/v1/requests", body)) == (422, "invalid")


def test_variables_asked_for_with_nulls_as_generated_clients_send_them_are_asked_for(bot: Caller) -> None:
    nothing: dict[str, Any] = {"default": None, "options": [], "execution_id": None, "timeout_seconds": None}
    body = {"question": "Key?", "kind": "env_var", "fields": ["API_KEY"], **nothing}
    assert bot.post("/v1/requests", body).status_code == 201


def releasing(given: list[dict[str, str]]) -> Callable[[AsyncTurn], Awaitable[str]]:
    """An agent that asks for a variable, which is `given`, and then where to release."""

    async def release(turn: AsyncTurn) -> str:
        given.append(dict(await turn.hitl.request_env_var(["API_KEY"])))
        return f"to {await turn.hitl.request_decision('Where?', ['staging', 'production'])}"

    return release


async def test_variables_are_typed_once_for_a_turn_that_runs_again_in_this_process(
    doors: Doors, anna: Caller, olga: Caller
) -> None:
    """It waits for nobody, and so runs again after each answer."""
    agent, given = f"releaser-{uuid4().hex[:8]}", list[dict[str, str]]()

    def answer() -> dict[str, Any]:
        asked = answer_next(anna, agent, {"API_KEY": "hunter2"}, kind="env_var")
        answer_next(anna, agent, "staging", kind="decision")
        return asked

    async with serving(doors, agent, releasing(given), wait_s=0) as client:
        stream = client.conversations.chat("release it")
        answering = asyncio.create_task(asyncio.to_thread(answer))
        events = [event async for event in stream]
        asked = await answering
        assert given == [{"API_KEY": "hunter2"}] * 2
        kinds = [one.body["kind"] for one in events if one.type == "hitl_requested"]
        assert kinds == ["env_var", "decision"]
        async with asyncio.timeout(20):
            # The turn is over, and its worker hears that at about the same time as its reader.
            while client.channel.taken.of(asked["execution_id"], asked["request_id"]) is not None:
                await asyncio.sleep(0.01)


async def test_variables_that_were_erased_are_asked_for_again_by_a_turn_that_runs_again(
    doors: Doors, anna: Caller, olga: Caller
) -> None:
    agent, given = f"releaser-{uuid4().hex[:8]}", list[dict[str, str]]()

    def answer() -> None:
        asked = answer_next(anna, agent, {"API_KEY": "hunter2"}, kind="env_var")
        where = open_hold(anna, agent, kind="decision")
        erased = olga.post(f"/v1/requests/{asked['request_id']}/secrets/erase", {})
        assert erased.json()["erased"] == 1
        decide(anna, where, decision="respond", value="staging")
        answer_next(anna, agent, {"API_KEY": "hunter3"}, kind="env_var")

    async with serving(doors, agent, releasing(given), wait_s=0) as client:
        stream = client.conversations.chat("release it")
        answering = asyncio.create_task(asyncio.to_thread(answer))
        said = [event.body["text"] async for event in stream if event.type == "message"]
        await answering
    assert said == ["to staging"]
    assert given == [{"API_KEY": "hunter2"}, {"API_KEY": "hunter3"}]


def test_variables_rejected_with_a_value_are_refused_before_anything_is_written(
    bot: Caller, anna: Caller
) -> None:
    request = asked(bot, "API_KEY")

    assert refused(answered(anna, request, "hunter2", "reject")) == (422, "invalid")
    assert answered(anna, request, None, "reject").status_code == 200
    assert refused(taken(bot, request)) == (409, "not_released")


def test_variables_are_handed_to_no_operator_and_still_to_the_agent(
    bot: Caller, anna: Caller, olga: Caller
) -> None:
    request = asked(bot, "API_KEY")
    answered(anna, request, {"API_KEY": "hunter2"})

    told = taken(olga, request)

    assert refused(told) == (403, "not_authorised")
    assert "hunter2" not in told.text
    assert values_of(taken(bot, request)) == {"/API_KEY": "hunter2"}


def test_erased_variables_are_taken_by_nobody(bot: Caller, anna: Caller, olga: Caller) -> None:
    request = asked(bot, "API_KEY")
    answered(anna, request, {"API_KEY": "hunter2"})
    path = f"/v1/requests/{request['request_id']}/secrets"

    assert olga.post(f"{path}/erase", {}).json()["erased"] == 1
    assert refused(taken(bot, request)) == (409, "expired")


def test_gated_function_runs_with_its_sensitive_argument_and_asks_for_variables(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    seen: list[Any] = []

    def held(kind: str) -> Any:
        items = anna.get("/v1/holds?status=open&agent=sealer").json()["items"]
        return next((hold for hold in items if hold["kind"] == kind), None)

    token = doors.token("sealer", "agent", agent="sealer")
    with (
        Placet(doors.url, token=token, agent="sealer") as placet,
        ThreadPoolExecutor(1) as pool,
        placet.execution(request="Log in") as run,
    ):

        @run.gated(tool=TOOL, sensitive=["token"])
        def log_in(to: str, token: str) -> str:
            seen.append(token)
            return "in"

        waiting = pool.submit(log_in, "ops", "hunter2-token")
        hold = wait_for(lambda: held("permission"), bool)
        assert "hunter2" not in json.dumps(hold)
        word = {"decision": "approve", "digest": hold["digest"]}
        assert anna.post(f"/v1/holds/{hold['hold_id']}/decision", word).status_code == 200
        assert waiting.result() == "in"
        asking = pool.submit(run.ask_env, "API_KEY")
        hold = wait_for(lambda: held("env_var"), bool)
        assert answered(anna, hold, {"API_KEY": "hunter2-key"}).status_code == 200
        assert asking.result() == {"API_KEY": "hunter2-key"}

    assert seen == ["hunter2-token"]


def test_vault_at_the_terminal_erases_lists_and_destroys(doors: Doors) -> None:
    tenant = f"t-{uuid4().hex[:8]}"
    bot = doors.caller("bot", "agent", tenant=tenant, agent="billing")
    olga = doors.caller("olga", "operator", tenant=tenant)
    assert olga.call("PUT", f"/v1/tools/{TOOL}", DEFINITION).status_code == 200
    call = proposed(bot)
    root = ["--url", doors.url, "--token", doors.token("root", "admin", tenant=tenant)]

    def said(*arguments: str) -> Any:
        done = CliRunner().invoke(app, [*root, "vault", *arguments, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    asked_first = CliRunner().invoke(app, [*root, "vault", "destroy-key", "key-1"])
    erased = said("erase", f"{call['execution_id']}/{call['call_id']}", "--yes")
    destroyed = said("destroy-key", "key-1", "--yes", "--reason", "the customer left")

    assert asked_first.exit_code == 2
    assert erased["erased"] == 2
    assert destroyed["destroyed_at"] is not None
    assert [key["name"] for key in said("keys")] == ["key-1"]
