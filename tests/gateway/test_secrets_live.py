"""Sensitive arguments through the doors of a running stack: sealed, decided blind, handed over once, erased."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import Any
from uuid import uuid4

import pytest

from placet.ids import call_id
from schemas.audit import record_leaf
from schemas.canonical import call_digest, canonical, sha256_hex
from schemas.merkle import root_of_path
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sealed import (
    DEFINITION,
    PLAIN,
    TOOL,
    consumed,
    decided,
    path_of,
    proposed,
    refused,
    values_of,
)
from tests.gateway.sockets import open_socket
from tests.gateway.test_proofs_live import proof_of, raw_of
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture(scope="module", autouse=True)
def _published(doors: Doors) -> None:
    for tenant in ("acme", "vaulted"):
        olga = doors.caller("olga", "operator", tenant=tenant)
        assert olga.call("PUT", f"/v1/tools/{TOOL}", DEFINITION).status_code == 200


@pytest.fixture
def olga(doors: Doors) -> Caller:
    return doors.caller("olga", "operator")


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


@pytest.mark.parametrize("key", [None, "again"])
def test_secrets_are_not_handed_to_who_reads_off_the_attempt_and_names_it(
    doors: Doors, bot: Caller, anna: Caller, key: str | None
) -> None:
    call = proposed(bot)
    assert decided(anna, call).status_code == 200
    body = {"digest": call["digest"], "attempt_id": "mine"}
    assert bot.post(f"{path_of(call)}/consume", body).status_code == 200
    other = doors.caller("bot-again", "agent", agent="billing")
    assert other.get(path_of(call)).json()["attempt_id"] == "mine"
    answer = other.post(f"{path_of(call)}/consume", body, key=key)
    assert refused(answer) == (409, "already_consumed")
    assert "hunter2" not in answer.text
    assert values_of(bot.post(f"{path_of(call)}/consume", body))["/token"] == PLAIN["token"]


def test_secrets_after_the_result_are_not_handed_over_again(bot: Caller, anna: Caller) -> None:
    call = proposed(bot)
    decided(anna, call)
    consumed(bot, call, "mine")
    done = {"attempt_id": "mine", "outcome": "succeeded", "output": "ok"}
    assert bot.post(f"{path_of(call)}/result", done).status_code == 200

    assert refused(consumed(bot, call, "mine")) == (409, "already_consumed")


@pytest.mark.parametrize("key", [None, "first"])
def test_secrets_are_not_handed_again_to_an_attempt_after_a_second_run_was_released(
    bot: Caller, anna: Caller, key: str | None
) -> None:
    call = proposed(bot)
    decided(anna, call)
    key = key and f"{key}-{call['call_id']}"
    body = {"digest": call["digest"], "attempt_id": "mine"}
    assert values_of(bot.post(f"{path_of(call)}/consume", body, key=key))["/token"] == PLAIN["token"]
    unknown = {"attempt_id": "mine", "outcome": "unknown"}
    assert bot.post(f"{path_of(call)}/result", unknown).status_code == 200
    assert decided(anna, bot.get(path_of(call)).json()).status_code == 200

    again = bot.post(f"{path_of(call)}/consume", body, key=key)
    assert refused(again) == (409, "already_consumed")
    assert "hunter2" not in again.text
    assert values_of(consumed(bot, call, "another"))["/token"] == PLAIN["token"]


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


@pytest.mark.parametrize("logins", [{"pin": "hunter2-pin"}, "hunter2-pin", [["hunter2-pin"]]], ids=str)
def test_sensitive_value_where_nobody_looks_for_one_is_refused_before_it_is_sent(
    bot: Caller, logins: Any
) -> None:
    execution_id = bot.execution()
    arguments = {"token": PLAIN["token"], "logins": logins}
    answer = bot.post(
        f"/v1/executions/{execution_id}/tool-calls?wait=0", {"tool": TOOL, "arguments": arguments}
    )
    assert refused(answer) == (422, "invalid_arguments")
    assert "hides" in answer.json()["detail"]
    assert "hunter2" not in answer.text
    events = bot.get(f"/v1/executions/{execution_id}/events").json()["items"]
    assert len(events) == 1, "nothing of it is in the log"


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
    said = decided(anna, call, "edit", edited_arguments=edited)
    assert said.status_code == 200
    now = bot.get(path_of(call)).json()

    assert said.json()["edited_digest"] == now["digest"]
    assert now["digest"] != call_digest("acme", "billing", TOOL, now["tool_version"], canonical(edited))
    assert (now["status"], now["revision"], now["arguments"]["to"]) == ("released", 2, "dev")
    assert now["arguments"]["logins"] == call["arguments"]["logins"]
    assert now["arguments"]["token"] != call["arguments"]["token"]
    assert "second-token" not in json.dumps(now)
    assert values_of(consumed(bot, now)) == {
        "/token": "second-token",
        "/logins/0/pin": PLAIN["logins"][0]["pin"],  # type: ignore[index]
    }


def test_sensitive_arguments_are_handed_to_no_operator_and_still_to_the_agent(
    bot: Caller, anna: Caller, olga: Caller
) -> None:
    call = proposed(bot)
    decided(anna, call)

    told = consumed(olga, call)

    assert refused(told) == (403, "not_authorised")
    assert "hunter2" not in told.text
    assert values_of(consumed(bot, call))["/token"] == PLAIN["token"]


def test_reviewer_who_guesses_the_value_is_not_told_that_it_is_right(bot: Caller, anna: Caller) -> None:
    call = proposed(bot)

    decided(anna, call, "edit", edited_arguments={**call["arguments"], "token": PLAIN["token"]})

    assert bot.get(path_of(call)).json()["arguments"]["token"] != call["arguments"]["token"]


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

    def actions() -> list[str]:
        return [row["action"] for row in root.get("/v1/audit").json()["items"]]

    wait_for(actions, lambda found: "destroy_data_key" in found)


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


@pytest.mark.parametrize(("key", "code"), [(None, "id_reused"), ("k", "idempotency_key_reused")])
@pytest.mark.parametrize("is_edited", [False, True])
def test_call_proposed_again_after_its_values_were_erased_is_another_body(
    bot: Caller, anna: Caller, olga: Caller, is_edited: bool, key: str | None, code: str
) -> None:
    execution_id = bot.execution()
    path = f"/v1/executions/{execution_id}/tool-calls?wait=0"
    key = key and f"{key}-{execution_id}"
    body = {"call_id": "c", "tool": TOOL, "arguments": PLAIN}
    call = bot.post(path, body, key=key).json()
    if is_edited:
        edited = {**call["arguments"], "token": "another-token-of-anna"}
        assert decided(anna, call, decision="edit", edited_arguments=edited).status_code == 200
    assert bot.post(path, body, key=key).json()["call_id"] == "c"
    assert olga.post(f"{path_of(call)}/secrets/erase", {}).status_code == 200

    assert refused(bot.post(path, body, key=key)) == (409, code)


def test_call_id_made_of_a_sensitive_value_is_refused(bot: Caller) -> None:
    execution_id = bot.execution()
    path = f"/v1/executions/{execution_id}/tool-calls?wait=0"
    guessable = call_id(execution_id, TOOL, sha256_hex(canonical(PLAIN)), 3)
    told = call_id(execution_id, TOOL, sha256_hex(canonical({"to": "ops"})), 0)

    answer = bot.post(path, {"call_id": guessable, "tool": TOOL, "arguments": PLAIN})

    assert refused(answer) == (422, "invalid")
    assert "gated(sensitive=" in answer.json()["detail"]
    assert bot.post(path, {"call_id": told, "tool": TOOL, "arguments": PLAIN}).status_code == 202
