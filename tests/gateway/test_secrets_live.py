"""Sensitive values through the doors of a running stack: sealed, decided blind, handed over once, erased."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from placet import Placet
from placet.ids import call_id
from schemas.audit import record_leaf
from schemas.canonical import call_digest, canonical, sha256_hex
from schemas.merkle import root_of_path
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.gateway.test_proofs_live import proof_of, raw_of
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(180)]

TOOL = "send_login"
DEFINITION: dict[str, Any] = {
    "annotations": {"destructiveHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "token": {"type": "string", "minLength": 4, "x-placet-sensitive": True},
            "logins": {
                "type": "array",
                "items": {"type": "object", "properties": {"pin": {"x-placet-sensitive": True}}},
            },
        },
        "required": ["token"],
    },
}
PLAIN = {"to": "ops", "token": "hunter2-token", "logins": [{"pin": {"n": [1.5, None]}}]}


@pytest.fixture(scope="module", autouse=True)
def _published(doors: Doors) -> None:
    for tenant in ("acme", "vaulted"):
        olga = doors.caller("olga", "operator", tenant=tenant)
        assert olga.call("PUT", f"/v1/tools/{TOOL}", DEFINITION).status_code == 200


@pytest.fixture
def olga(doors: Doors) -> Caller:
    return doors.caller("olga", "operator")


def proposed(bot: Caller, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return bot.propose(bot.execution(), TOOL, arguments=arguments or PLAIN, **more)


def path_of(call: dict[str, Any]) -> str:
    return f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"


def decided(by: Caller, call: dict[str, Any], decision: str = "approve", **more: Any) -> Any:
    return by.post(
        f"/v1/holds/{call['hold_id']}/decision", {"decision": decision, "digest": call["digest"], **more}
    )


def consumed(bot: Caller, call: dict[str, Any], attempt_id: str = "") -> Any:
    body = {"digest": call["digest"], "attempt_id": attempt_id or f"a-{uuid4().hex}"}
    return bot.post(f"{path_of(call)}/consume", body)


def values_of(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return {secret["path"]: secret["value"] for secret in answer.json()["secrets"]}


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_sensitive_arguments_are_handed_to_the_attempt_that_consumed_and_stand_nowhere_else(
    bot: Caller, anna: Caller
) -> None:
    call = proposed(bot)
    public = call["arguments"]

    assert "hunter2" not in json.dumps(call)
    assert set(public["token"]) == {"handle", "commitment"}
    assert call["digest"] == call_digest("acme", "billing", TOOL, call["tool_version"], canonical(public))
    hold = anna.get(f"/v1/holds/{call['hold_id']}").json()
    assert hold["arguments"] == public
    assert decided(anna, call).status_code == 200
    answer = consumed(bot, call, "mine")

    assert values_of(answer) == {"/token": PLAIN["token"], "/logins/0/pin": PLAIN["logins"][0]["pin"]}  # type: ignore[index]
    for secret in answer.json()["secrets"]:
        proof = hashlib.sha256(bytes.fromhex(secret["nonce"]) + canonical(secret["value"]).encode())
        there = public["token"] if secret["path"] == "/token" else public["logins"][0]["pin"]
        assert (secret["handle"], proof.hexdigest()) == (there["handle"], there["commitment"])
    assert values_of(consumed(bot, call, "mine")) == values_of(answer)
    assert refused(consumed(bot, call, "another")) == (409, "already_consumed")
    assert "secrets" not in bot.get(path_of(call)).json()


def test_secrets_after_the_result_are_not_handed_over_again(bot: Caller, anna: Caller) -> None:
    call = proposed(bot)
    decided(anna, call)
    consumed(bot, call, "mine")
    done = {"attempt_id": "mine", "outcome": "succeeded", "output": "ok"}
    assert bot.post(f"{path_of(call)}/result", done).status_code == 200

    assert refused(consumed(bot, call, "mine")) == (409, "expired")


def test_proposal_repeated_with_the_same_secret_is_the_same_call_and_with_another_is_a_reuse(
    bot: Caller,
) -> None:
    call = proposed(bot)
    path = f"/v1/executions/{call['execution_id']}/tool-calls?wait=0"
    body = {"call_id": call["call_id"], "tool": TOOL, "arguments": PLAIN}

    again = bot.post(path, body)
    keyed = [bot.post(path, {"tool": TOOL, "arguments": PLAIN}, key="k1").json() for _ in range(2)]

    assert again.json()["arguments"] == call["arguments"]
    assert keyed[0]["call_id"] == keyed[1]["call_id"]
    assert keyed[0]["arguments"] == keyed[1]["arguments"]
    assert refused(bot.post(path, {**body, "arguments": {**PLAIN, "token": "other"}})) == (409, "id_reused")


@pytest.mark.parametrize(
    ("token", "path"),
    [
        ("abc", "arguments.token"),
        (17_171_717, "arguments.token"),
        ({"handle": "sec_" + "0" * 32, "commitment": "0" * 64}, "arguments.token"),
    ],
)
def test_sensitive_argument_that_does_not_fit_is_refused_without_being_quoted(
    bot: Caller, token: Any, path: str
) -> None:
    body = {"tool": TOOL, "arguments": {"token": token}}

    answer = bot.post(f"/v1/executions/{bot.execution()}/tool-calls?wait=0", body)

    assert refused(answer) == (422, "invalid_arguments")
    assert answer.json()["errors"][0]["path"] == path
    assert canonical(token).strip('"') not in answer.text


def test_handle_of_another_call_is_refused(bot: Caller) -> None:
    stolen = proposed(bot)["arguments"]["token"]
    body = {"tool": TOOL, "arguments": {"token": stolen}}

    answer = bot.post(f"/v1/executions/{bot.execution()}/tool-calls?wait=0", body)

    assert refused(answer) == (422, "invalid_arguments")


def test_tool_whose_mark_stands_where_nobody_looks_is_not_published(olga: Caller) -> None:
    schema = {"type": "object", "anyOf": [{"properties": {"a": {"x-placet-sensitive": True}}}]}

    answer = olga.call("PUT", "/v1/tools/hidden", {"inputSchema": schema})

    assert refused(answer) == (422, "invalid")
    assert "properties and items" in answer.text


def test_edit_keeps_a_sensitive_value_unread_or_gives_another(bot: Caller, anna: Caller) -> None:
    call = proposed(bot)
    edited = {**call["arguments"], "to": "dev", "token": "second-token"}

    stolen = decided(
        anna, call, "edit", edited_arguments={**edited, "logins": [{"pin": edited["logins"][0]["pin"]}] * 2}
    )
    assert refused(stolen) == (422, "invalid_arguments")
    assert decided(anna, call, "edit", edited_arguments=edited).status_code == 200
    now = bot.get(path_of(call)).json()

    assert (now["status"], now["revision"], now["arguments"]["to"]) == ("released", 2, "dev")
    assert now["arguments"]["logins"] == call["arguments"]["logins"]
    assert now["arguments"]["token"] != call["arguments"]["token"]
    assert "second-token" not in json.dumps(now)
    assert values_of(consumed(bot, now)) == {
        "/token": "second-token",
        "/logins/0/pin": PLAIN["logins"][0]["pin"],  # type: ignore[index]
    }


def test_reviewer_who_guesses_the_value_is_not_told_that_it_is_right(bot: Caller, anna: Caller) -> None:
    call = proposed(bot)

    decided(anna, call, "edit", edited_arguments={**call["arguments"], "token": PLAIN["token"]})

    assert bot.get(path_of(call)).json()["arguments"]["token"] != call["arguments"]["token"]


def asked(bot: Caller, *names: str, **more: Any) -> dict[str, Any]:
    body = {
        "request_id": f"q-{uuid4().hex[:12]}", "kind": "env_var", "question": "Keys?", "fields": names, **more
    }  # fmt: skip
    answer = bot.post("/v1/requests", body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def answered(by: Caller, request: dict[str, Any], value: Any, decision: str = "respond") -> Any:
    return by.post(f"/v1/holds/{request['hold_id']}/decision", {"decision": decision, "value": value})


def taken(bot: Caller, request: dict[str, Any], attempt_id: str = "mine") -> Any:
    return bot.post(f"/v1/requests/{request['request_id']}/secrets", {"attempt_id": attempt_id})


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


@pytest.mark.parametrize("more", [{"default": {"API_KEY": "hunter2"}}, {"options": ["hunter2"]}])
def test_variables_asked_for_with_values_at_hand_are_refused(bot: Caller, more: dict[str, Any]) -> None:
    body = {"question": "Key?", "kind": "env_var", "fields": ["API_KEY"], **more}

    assert refused(bot.post("/v1/requests", body)) == (422, "invalid")


def test_variables_rejected_with_a_value_are_refused_before_anything_is_written(
    bot: Caller, anna: Caller
) -> None:
    request = asked(bot, "API_KEY")

    assert refused(answered(anna, request, "hunter2", "reject")) == (422, "invalid")
    assert answered(anna, request, None, "reject").status_code == 200
    assert refused(taken(bot, request)) == (409, "not_released")


def test_erased_arguments_are_never_handed_over_and_everything_else_stands(
    doors: Doors, bot: Caller, anna: Caller, olga: Caller
) -> None:
    call = proposed(bot)
    decided(anna, call)
    before = bot.get(f"/v1/executions/{call['execution_id']}/events").json()["items"]

    assert refused(anna.post(f"{path_of(call)}/secrets/erase", {})) == (403, "not_authorised")
    erased = olga.post(f"{path_of(call)}/secrets/erase", {"reason": "asked by the customer"})
    again = olga.post(f"{path_of(call)}/secrets/erase", {"reason": "asked by the customer"})

    assert (erased.status_code, erased.json()["erased"]) == (200, 2)
    assert (again.status_code, again.json()["erased"]) == (200, 2)
    assert refused(consumed(bot, call)) == (409, "expired")
    after = bot.get(f"/v1/executions/{call['execution_id']}/events").json()["items"]
    assert after[: len(before)] == before
    assert [event["type"] for event in after[len(before) :]] == ["SecretsErased", "CommandRefused"]
    with sqlite3.connect(doors.stack.data_dir / "vault.db") as vault:
        boxes = vault.execute("SELECT box FROM sealed WHERE subject_id = ?", (call["call_id"],)).fetchall()
    assert boxes == [(None,), (None,)]


def test_erased_variables_are_taken_by_nobody(bot: Caller, anna: Caller, olga: Caller) -> None:
    request = asked(bot, "API_KEY")
    answered(anna, request, {"API_KEY": "hunter2"})
    path = f"/v1/requests/{request['request_id']}/secrets"

    assert olga.post(f"{path}/erase", {}).json()["erased"] == 1
    assert refused(taken(bot, request)) == (409, "expired")


def test_destroyed_data_key_erases_the_tenants_values_and_the_next_are_under_another(doors: Doors) -> None:
    bot = doors.caller("bot", "agent", tenant="vaulted", agent="billing")
    root = doors.caller("root", "admin", tenant="vaulted")
    call = proposed(bot)
    (key,) = root.get("/v1/data-keys").json()["items"]
    assert refused(doors.caller("olga", "operator", tenant="vaulted").get("/v1/data-keys")) == (
        403, "not_authorised"
    )  # fmt: skip

    assert refused(root.post("/v1/data-keys/key-9/destroy", {})) == (404, "not_found")
    gone = root.post(f"/v1/data-keys/{key['name']}/destroy", {"reason": "the customer left"})

    assert gone.status_code == 200, gone.text
    assert gone.json()["destroyed_at"] is not None
    assert decided(root, call).status_code == 200
    assert refused(consumed(bot, call)) == (409, "expired")
    new = proposed(bot)
    decided(root, new)
    assert values_of(consumed(bot, new))["/token"] == PLAIN["token"]
    actions = [row["action"] for row in root.get("/v1/audit").json()["items"]]
    assert "destroy_data_key" in actions


async def test_socket_of_the_agent_is_handed_the_values_and_the_reviewers_is_not(
    bot: Caller, anna: Caller
) -> None:
    execution_id = f"w-{uuid4().hex[:12]}"
    async with open_socket(bot.url, bot.token) as socket, open_socket(anna.url, anna.token) as reviewer:
        await reviewer.subscribe("holds", "events")
        await socket.send(
            type="start_execution", ref=f"s-{execution_id}", body={"execution_id": execution_id}
        )
        proposed = (await socket.propose(execution_id, "c", TOOL, arguments=PLAIN))["body"]
        shown = await reviewer.next("tool_call_pending_review", call_id="c", execution_id=execution_id)
        decision = {"hold_id": proposed["hold_id"], "decision": "approve", "digest": proposed["digest"]}
        assert (await reviewer.ask("decision", **decision))["status"] == 200
        await socket.next("tool_call_decided", call_id="c")
        grant = {"digest": proposed["digest"], "attempt_id": "mine"}
        where = {"execution_id": execution_id, "call_id": "c"}

        reply = await socket.ask("consume", **where, body=grant)
        again = await socket.ask("consume", **where, body=grant)
        other = await socket.ask("consume", **where, body={**grant, "attempt_id": "another"})
        await reviewer.next("event", event_type="GrantConsumed", execution_id=execution_id)

    assert {one["value"] for one in reply["body"]["secrets"] if one["path"] == "/token"} == {PLAIN["token"]}
    assert again["body"]["secrets"] == reply["body"]["secrets"]
    assert other["body"]["code"] == "already_consumed"
    assert "hunter2" not in json.dumps([shown, reviewer.kept])


def test_proof_of_a_decision_holds_after_the_value_that_it_was_about_was_erased(
    doors: Doors, bot: Caller, anna: Caller, olga: Caller
) -> None:
    ada = doors.caller("ada", "analyst")
    call = proposed(bot)
    decided(anna, call)

    def approval() -> Any:
        rows = ada.get("/v1/audit?limit=500&subject=anna").json()["items"]
        return next((row for row in rows if row["call_id"] == call["call_id"]), None)

    event_id = str(wait_for(approval, bool)["event_id"])
    before = proof_of(ada, event_id)
    assert olga.post(f"{path_of(call)}/secrets/erase", {}).status_code == 200

    after = proof_of(ada, event_id)

    assert after["record"] == before["record"]
    record, head = after["record"], after["head"]
    path = [bytes.fromhex(step) for step in after["path"]]
    root = root_of_path(
        record_leaf(record["topic"], raw_of(record)), after["leaf_index"], after["tree_size"], path
    )
    place = record["topic"], record["partition"]
    tree = next(tree for tree in head["trees"] if (tree["topic"], tree["partition"]) == place)
    assert root is not None
    assert (root.hex(), after["tree_size"]) == (tree["root"], tree["size"])


def test_call_id_made_of_a_sensitive_value_is_refused(bot: Caller) -> None:
    execution_id = bot.execution()
    path = f"/v1/executions/{execution_id}/tool-calls?wait=0"
    guessable = call_id(execution_id, TOOL, sha256_hex(canonical(PLAIN)), 3)
    told = call_id(execution_id, TOOL, sha256_hex(canonical({"to": "ops"})), 0)

    answer = bot.post(path, {"call_id": guessable, "tool": TOOL, "arguments": PLAIN})

    assert refused(answer) == (422, "invalid")
    assert "gated(sensitive=" in answer.json()["detail"]
    assert bot.post(path, {"call_id": told, "tool": TOOL, "arguments": PLAIN}).status_code == 202


def test_gated_function_runs_with_its_sensitive_argument_and_asks_for_variables(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    seen: list[Any] = []

    def held(kind: str) -> Any:
        items = anna.get("/v1/holds?status=open").json()["items"]
        return next((hold for hold in items if hold["agent"] == "sealer" and hold["kind"] == kind), None)

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
