from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway import resources as r
from gateway.operations.calls import VERDICT_WAIT_S
from schemas.limits import INPUT_SCHEMA_MAX_BYTES
from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

# What the gateway tells of itself as every other role does at its probe (docs/operations.md).
OF_EVERY_ROLE = {
    "placet_role_ready",
    "placet_role_lag_records",
    "placet_role_stalled_seconds",
    "placet_role_loop_age_seconds",
    "placet_role_kafka_age_seconds",
    "process_cpu_seconds",
    "python_gc_collections",
}

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def _code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_start_repeated_is_the_same_execution(bot: Caller) -> None:
    body = {"execution_id": f"e-{uuid4().hex}", "request": {"pay": "March"}}
    first, again = bot.post("/v1/executions", body), bot.post("/v1/executions", body)
    assert first.status_code == 201
    assert again.status_code in (200, 201)
    assert first.json()["request"] == '{"pay":"March"}'
    r.Execution.model_validate(again.json())
    assert _code(bot.post("/v1/executions", {**body, "request": "other"})) == (409, "id_reused")


def test_start_id_made_by_the_server_is_the_same_under_one_key(bot: Caller) -> None:
    key = uuid4().hex
    ids = {bot.post("/v1/executions", {"request": "x"}, key=key).json()["execution_id"] for _ in range(2)}
    assert len(ids) == 1
    other = bot.post("/v1/executions", {"request": "x"}).json()["execution_id"]
    assert other not in ids


def test_same_key_with_another_body_is_a_reuse(bot: Caller) -> None:
    execution_id, key = bot.execution(), uuid4().hex
    path = f"/v1/executions/{execution_id}/tool-calls?wait=0"
    body = {"call_id": "c1", "tool": "read_file", "arguments": {"a": 1}}
    assert bot.post(path, body, key=key).status_code == 200
    assert bot.post(path, body, key=key).status_code == 200
    answer = bot.post(path, {**body, "arguments": {"a": 2}}, key=key)
    assert _code(answer) == (409, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("tool", "status", "shown"),
    [
        ("read_file", 200, "released"),
        ("send_money", 202, "held"),
        ("shell", 200, "denied"),
        ("unknown", 202, "held"),
    ],
)
def test_propose_is_answered_with_the_verdict(bot: Caller, tool: str, status: int, shown: str) -> None:
    path = f"/v1/executions/{bot.execution()}/tool-calls?wait=0"
    answer = bot.post(path, {"call_id": "c1", "tool": tool, "arguments": {"amount": 5}})
    assert answer.status_code == status
    assert r.ToolCall.model_validate(answer.json()).status == shown


def test_propose_same_id_other_body_is_a_reuse(bot: Caller) -> None:
    execution_id = bot.execution()
    bot.propose(execution_id, "read_file", call_id="c1")
    path = f"/v1/executions/{execution_id}/tool-calls"
    answer = bot.post(path, {"call_id": "c1", "tool": "read_file", "arguments": {"amount": 6}})
    assert _code(answer) == (409, "id_reused")


def test_propose_waits_for_the_persons_word(bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    with ThreadPoolExecutor(1) as pool:
        path = f"/v1/executions/{execution_id}/tool-calls?wait=30"
        asked = pool.submit(
            bot.post, path, {"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}}
        )
        hold = _wait_for_hold(anna, execution_id)
        decision = {"decision": "approve", "digest": hold["digest"]}
        assert anna.post(f"/v1/holds/{hold['hold_id']}/decision", decision).status_code == 200
        answer = asked.result()
    assert answer.status_code == 200
    assert answer.json()["status"] == "released"


def _wait_for_hold(caller: Caller, execution_id: str) -> dict[str, Any]:
    for _ in range(500):
        for hold in caller.get("/v1/holds?status=open&limit=500").json()["items"]:
            if hold["execution_id"] == execution_id:
                return dict(hold)
    raise AssertionError("no hold was opened")


def test_whole_loop_runs_once_with_exactly_what_was_approved(bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    call = bot.propose(execution_id)
    where = f"/v1/executions/{execution_id}/tool-calls/{call['call_id']}"
    edit = {"decision": "edit", "digest": call["digest"], "edited_arguments": {"amount": 4}}
    recorded = anna.post(f"/v1/holds/{call['hold_id']}/decision", edit)
    assert recorded.status_code == 200, recorded.text
    r.Recorded.model_validate(recorded.json())
    released = bot.get(where).json()
    assert recorded.json()["edited_digest"] == released["digest"]
    assert released["status"] == "released"
    assert released["approved_arguments"] == {"amount": 4}
    assert released["digest"] != call["digest"]
    stale = bot.post(f"{where}/consume", {"digest": call["digest"], "attempt_id": "a1"})
    assert _code(stale) == (409, "digest_mismatch")
    grant = {"digest": released["digest"], "attempt_id": "a1"}
    assert bot.post(f"{where}/consume", grant).status_code == 200
    assert bot.post(f"{where}/consume", grant).status_code == 200
    other = bot.post(f"{where}/consume", {**grant, "attempt_id": "a2"})
    assert _code(other) == (409, "already_consumed")
    result = {"attempt_id": "a1", "outcome": "succeeded", "output": {"paid": True}, "duration_ms": 3}
    ended = bot.post(f"{where}/result", result)
    assert (ended.status_code, ended.json()["status"]) == (200, "succeeded")
    assert bot.post(f"{where}/result", result).status_code == 200
    done = bot.post(f"/v1/executions/{execution_id}/complete", {"result": "paid"})
    assert done.json()["state"] == "completed"
    assert _code(bot.post("/v1/executions", {"execution_id": execution_id})) == (409, "execution_closed")


def test_call_whose_proposal_was_refused_says_what_became_of_it(bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    assert bot.post(f"/v1/executions/{execution_id}/complete", {}).is_success
    late = bot.post(
        f"/v1/executions/{execution_id}/tool-calls", {"call_id": "late", "tool": "read_file", "arguments": {}}
    )
    assert _code(late) == (409, "execution_closed")
    path = f"/v1/executions/{execution_id}/tool-calls"

    for caller in (bot, anna):
        found = wait_for(
            lambda caller=caller: caller.get(f"{path}/late"),  # type: ignore[misc]
            lambda answer: "refused" in answer.json(),
        )
        problem = r.Problem.model_validate(found.json())
        assert (problem.status, problem.code) == (404, "not_found")
        assert problem.refused is not None
        assert (problem.refused.code, problem.refused.detail) == ("execution_closed", late.json()["detail"])
        assert problem.detail.startswith("no such call: its proposal was refused (execution_closed: ")
    assert "refused" not in bot.get(f"{path}/never").json()


def test_consume_before_the_release_may_be_asked_again_after_it(bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    call = bot.propose(execution_id)
    path = f"/v1/executions/{execution_id}/tool-calls/{call['call_id']}/consume"
    grant = {"digest": call["digest"], "attempt_id": "a1"}
    assert _code(bot.post(path, grant)) == (409, "not_released")
    anna.post(f"/v1/holds/{call['hold_id']}/decision", {"decision": "approve", "digest": call["digest"]})
    assert bot.post(path, grant).status_code == 200


def test_two_approvers_at_once_one_wins_and_the_other_learns_whose(doors: Doors, bot: Caller) -> None:
    call = bot.propose(bot.execution())
    people = [doors.caller(f"reviewer-{n}", "reviewer") for n in range(4)]
    decision = {"decision": "approve", "digest": call["digest"]}
    path = f"/v1/holds/{call['hold_id']}/decision"
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda person: person.post(path, decision), people))
    winners = [answer.json()["decision_id"] for answer in answers if answer.status_code == 200]
    losers = [answer.json() for answer in answers if answer.status_code == 409]
    assert len(winners) == 1
    assert {loser["winning_decision_id"] for loser in losers} == set(winners)
    assert {loser["code"] for loser in losers} == {"already_decided"}


def test_decision_replayed_gets_the_same_answer(bot: Caller, anna: Caller) -> None:
    call = bot.propose(bot.execution())
    path = f"/v1/holds/{call['hold_id']}/decision"
    decision = {"decision": "reject", "digest": call["digest"], "feedback": "too much"}
    answers = [anna.post(path, decision) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len({answer.json()["decision_id"] for answer in answers}) == 1
    denied = bot.get(f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}").json()
    assert (denied["status"], denied["feedback"]) == ("denied", "too much")


def test_approve_after_cancel_is_refused(bot: Caller, anna: Caller) -> None:
    call = bot.propose(bot.execution())
    bot.post(f"/v1/executions/{call['execution_id']}/cancel", {})
    decision = {"decision": "approve", "digest": call["digest"]}
    answer = anna.post(f"/v1/holds/{call['hold_id']}/decision", decision)
    assert _code(answer) == (409, "execution_closed")


def test_paused_execution_judges_nothing_until_it_is_resumed(bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    assert anna.post(f"/v1/executions/{execution_id}/pause", {"reason": "wait"}).json()["state"] == "paused"
    asked = time.monotonic()
    call = bot.propose(execution_id, "read_file")
    assert call["status"] == "proposed"
    assert time.monotonic() - asked < VERDICT_WAIT_S, "a verdict was waited for that does not come in a pause"
    anna.post(f"/v1/executions/{execution_id}/resume")
    path = f"/v1/executions/{execution_id}/tool-calls/{call['call_id']}?wait=10"
    assert bot.get(path).json()["status"] == "released"


def test_bulk_decides_low_risk_only_and_answers_each(bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    low, high = bot.propose(execution_id, "unlisted_reader"), bot.propose(execution_id)
    risks = [call["verdict"]["risk"]["level"] for call in (low, high)]
    items = [
        {"hold_id": call["hold_id"], "digest": call["digest"], "decision": "approve"} for call in (low, high)
    ]
    answer = anna.post("/v1/holds/decisions", {"items": [*items, {**items[0], "hold_id": "nothing"}]})
    assert answer.status_code == 200
    answered = answer.json()["items"]
    for item, risk in zip(answered, risks, strict=False):
        assert ("decision_id" in item) is (risk == "low"), (item, risk)
    assert risks[1] == "high"
    assert answered[1]["code"] == "invalid"
    assert answered[2]["code"] == "not_found"


def test_bulk_tells_nothing_of_a_hold_that_the_token_may_not_see(bot: Caller, doors: Doors) -> None:
    server, call = doors.caller("bank", "tool:another"), bot.propose(bot.execution())
    assert _code(server.get(f"/v1/holds/{call['hold_id']}")) == (403, "not_authorised")
    items = [{"hold_id": call["hold_id"], "digest": call["digest"], "decision": "approve"}]
    answered = server.post("/v1/holds/decisions", {"items": items}).json()["items"]
    assert [item["code"] for item in answered] == ["not_authorised"], answered


def test_hold_claimed_delegated_extended_released(bot: Caller, anna: Caller) -> None:
    hold_id = bot.propose(bot.execution())["hold_id"]
    assert anna.post(f"/v1/holds/{hold_id}/claim").json()["claimed_by"] == "anna"
    mine = anna.get("/v1/holds?status=open&assignee=me&limit=500").json()["items"]
    assert hold_id in {hold["hold_id"] for hold in mine}
    before = anna.get(f"/v1/holds/{hold_id}").json()
    extended = anna.post(f"/v1/holds/{hold_id}/extend", {"seconds": 60}).json()
    assert extended["deadline_at"] > before["deadline_at"]
    assert anna.post(f"/v1/holds/{hold_id}/release").json()["claimed_by"] is None
    assert anna.post(f"/v1/holds/{hold_id}/delegate", {"to": "carl"}).json()["assignee"] == "carl"
    assert _code(anna.post(f"/v1/holds/{hold_id}/escalate"))[0] == 422
    r.Hold.model_validate(anna.get(f"/v1/holds/{hold_id}").json())


def test_request_is_a_hold_and_its_answer_comes_back(bot: Caller, anna: Caller) -> None:
    asked = bot.post("/v1/requests", {"question": "Which account?", "options": ["a", "b"]})
    assert asked.status_code == 201, asked.text
    request = asked.json()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bot.get, f"/v1/requests/{request['request_id']}?wait=20")
        word = {"decision": "respond", "value": "b"}
        assert anna.post(f"/v1/holds/{request['hold_id']}/decision", word).status_code == 200
        answered = waiting.result().json()
    assert (answered["status"], answered["response"]) == ("resolved", "b")
    r.HumanRequest.model_validate(answered)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"kind": "permission", "default": True}, "invalid"),
        ({"kind": "permission", "options": ["always"], "default": "always"}, "invalid"),
        ({"kind": "decision", "options": ["a", "b"], "default": "c"}, "unknown_option"),
        ({"kind": "clarification", "default": " "}, "invalid"),
    ],
)
def test_case_37_request_whose_default_no_person_could_answer_is_refused(
    bot: Caller, content: dict[str, Any], code: str
) -> None:
    answer = bot.post("/v1/requests", {"question": "May I?", "timeout_seconds": 1, **content})
    assert _code(answer) == (422, code)
    assert answer.json()["detail"].startswith("default: ")


def test_request_for_a_secret_that_names_no_variables_is_refused(bot: Caller) -> None:
    answer = bot.post("/v1/requests", {"question": "Key?", "kind": "env_var"})
    assert _code(answer) == (422, "invalid")
    assert "variables" in answer.json()["detail"]


def test_past_of_an_execution_by_version_time_and_offset(bot: Caller) -> None:
    execution_id = bot.execution()
    bot.propose(execution_id, "read_file")
    events = bot.get(f"/v1/executions/{execution_id}/events").json()["items"]
    assert [event["type"] for event in events[:2]] == ["ExecutionStarted", "ToolCallProposed"]
    for event in events:
        r.Event.model_validate(event)
    path = f"/v1/executions/{execution_id}"
    assert bot.get(f"{path}?at=1").json()["calls"] == 0
    assert bot.get(f"{path}?at={events[-1]['version']}").json()["calls"] == 1
    assert bot.get(path, params={"at": events[-1]["at"]}).json()["calls"] == 1
    place = f"{events[0]['partition']}@{events[0]['offset']}"
    assert bot.get(f"{path}?at={place}").json()["calls"] == 0
    assert bot.get(f"{path}?at=@{events[-1]['offset']}").json()["calls"] == 1
    assert _code(bot.get(f"{path}?at={events[0]['partition'] + 1}@1")) == (422, "invalid")
    assert bot.get(f"{path}?at=@0").status_code == 404
    assert bot.get(f"{path}?at=0").status_code == 404
    assert _code(bot.get(f"{path}?at=yesterday")) == (422, "invalid")
    first = bot.get(f"{path}/events?limit=1").json()
    second = bot.get(f"{path}/events?limit=1&cursor={first['next_cursor']}").json()
    assert [*first["items"], *second["items"]] == events[:2]


def test_after_a_writes_cursor_lists_show_the_write(bot: Caller, anna: Caller) -> None:
    call = bot.propose(bot.execution())
    holds = anna.get(f"/v1/holds?status=open&limit=500&after={call['cursor']}").json()["items"]
    assert call["hold_id"] in {hold["hold_id"] for hold in holds}
    assert _code(anna.get("/v1/holds?after=forged")) == (422, "invalid")


def test_audit_says_who_decided_and_what_came_of_it(doors: Doors, bot: Caller, anna: Caller) -> None:
    call = bot.propose(bot.execution())
    decision = {"decision": "reject", "digest": call["digest"], "feedback": "no"}
    cursor = anna.post(f"/v1/holds/{call['hold_id']}/decision", decision).json()["cursor"]
    analyst = doors.caller("ana", "analyst")
    found = []
    for _ in range(200):
        rows = analyst.get(f"/v1/audit?subject=anna&limit=500&after={cursor}").json()["items"]
        if found := [row for row in rows if row["call_id"] == call["call_id"]]:
            break
    r.AuditRow.model_validate(found[0])
    assert found[0]["result"]["status"] == "denied"
    assert _code(bot.get("/v1/audit")) == (403, "not_authorised")


def test_policy_with_a_typo_is_refused_with_its_place(doors: Doors) -> None:
    operator = doors.caller("olga", "operator")
    yaml = {"Content-Type": "application/yaml"}
    document = "policy: typo\nrules:\n  - {id: a, thenn: allow}\n"
    answer = operator.call("PUT", "/v1/policies/typo", content=document, headers=yaml)
    assert _code(answer) == (422, "invalid")
    assert {"rules[0].thenn", "rules[0].then"} <= {error["path"] for error in answer.json()["errors"]}
    assert operator.get("/v1/policies/typo/versions").status_code == 404


def test_publish_needs_an_operator_and_the_name_in_the_document(doors: Doors, anna: Caller) -> None:
    assert _code(anna.call("PUT", "/v1/tools/x", {"description": "x"})) == (403, "not_authorised")
    operator = doors.caller("olga", "operator")
    assert _code(operator.call("PUT", "/v1/tools/x", {"name": "y"})) == (422, "invalid")
    large = {"description": "d" * INPUT_SCHEMA_MAX_BYTES}
    schemas: list[dict[str, Any]] = [{"type": "nonsense"}, {"$schema": []}, large]
    for schema in schemas:
        assert _code(operator.call("PUT", "/v1/tools/x", {"inputSchema": schema})) == (422, "invalid")
    assert _code(operator.call("PUT", "/v1/policies/x", {"policy": "y"})) == (422, "invalid")


def test_user_and_workspace_only_as_the_token_permits(doors: Doors) -> None:
    plain = doors.caller("bot", "agent", agent="billing")
    assert _code(plain.post("/v1/executions", {"user": "alice"})) == (403, "not_authorised")
    bound = doors.caller("bot", "agent", agent="billing", user="alice", workspace="*")
    assert _code(bound.post("/v1/executions", {"user": "bob"})) == (403, "not_authorised")
    started = bound.post("/v1/executions", {"workspace": "w1"}).json()
    assert (started["user"], started["workspace"]) == ("alice", "w1")


def test_reviewers_are_who_decided_and_how(bot: Caller, doors: Doors) -> None:
    name = f"rosa-{uuid4().hex[:8]}"
    rosa = doors.caller(name, "reviewer")
    call = bot.propose(bot.execution())
    decision = {"decision": "approve", "digest": call["digest"]}
    decided = rosa.post(f"/v1/holds/{call['hold_id']}/decision", decision)
    assert decided.status_code == 200

    def of_rosa() -> list[r.Reviewer]:
        items = rosa.get("/v1/reviewers").json()["items"]
        return [one for item in items if (one := r.Reviewer.model_validate(item)).reviewer == name]

    (found,) = wait_for(of_rosa, lambda found: len(found) == 1)
    assert (found.approved, found.edited, found.rejected, found.answered) == (1, 0, 0, 0)
    assert rosa.get("/v1/reviewers?since=2999-01-01T00:00:00Z").json()["items"] == []
    assert _code(rosa.get("/v1/reviewers?since=yesterday")) == (422, "invalid")
    assert _code(bot.get("/v1/reviewers")) == (403, "not_authorised")


def test_system_doors(doors: Doors, admin: Caller) -> None:
    assert doors.client.get(f"{doors.url}/healthz").json() == {"status": "ok"}
    assert doors.client.get(f"{doors.url}/readyz").status_code == 200
    families = text_string_to_metric_families(doors.client.get(f"{doors.url}/metrics").text)
    assert {family.name for family in families} >= {"placet_gateway_requests", *OF_EVERY_ROLE}
    assert admin.get("/v1/dead-letters").json()["items"] == []
    assert admin.get("/v1/agents").status_code == 200
    assert admin.get("/v1/rules").json()["items"][0]["policy"] == "doors"
    assert _code(admin.get("/v1/nothing")) == (404, "not_found")
    assert admin.call("DELETE", "/v1/holds").status_code == 405
    assert doors.client.get(f"{doors.url}/openapi.json").json()["openapi"].startswith("3.1")
    assert doors.client.get(f"{doors.url}/asyncapi.json").json()["asyncapi"] == "3.0.0"
    assert doors.client.get(f"{doors.url}/schemas/policy.json").json()["title"] == "PolicyDocument"
