"""Planted calls at the gateway: who may plant and list, what is refused, and that nothing tells before the end."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest

from placet import consume
from tests.gateway import sealed
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# A name and a text that are in nothing else.
PLANTER, NOTE = "olga-who-plants", "nobody pays this account"
BAD = {"agent": "billing", "tool": "send_money", "arguments": {"amount": 7}, "note": NOTE, "requester": "bot"}


@pytest.fixture
def olga(doors: Doors, bot: Caller) -> Caller:
    """An operator of a project in which the agent has worked."""
    found = doors.caller(PLANTER, "operator")
    if not has_worked(found):
        bot.propose(bot.execution())
        wait_for(lambda: has_worked(found), bool)
    return found


def has_worked(olga: Caller) -> bool:
    agents = olga.get("/v1/agents").json()["items"]
    return any(one["held"] for agent in agents if agent["agent"] == BAD["agent"] for one in agent["tools"])


def working(doors: Doors) -> str:
    """A tenant of its own, whose agent has an account and has done nothing yet."""
    tenant = f"t{uuid4().hex[:8]}"
    doors.publish(tenant)
    admin = doors.caller("root", "admin", tenant=tenant)
    body = {"subjects": ["bot"], "agents": ["billing"]}
    assert admin.call("PUT", "/v1/principals/billing-service", body).status_code == 200
    return tenant


def planted(olga: Caller, **changes: Any) -> dict[str, Any]:
    answer = olga.post("/v1/probes", {**BAD, **changes})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def planted_later(olga: Caller, **changes: Any) -> dict[str, Any]:
    """A call that is planted in a run which was opened for it, as the client does it."""
    body = {**BAD, "execution_id": f"run-{uuid4().hex}", "call_id": f"call-{uuid4().hex}", **changes}
    opened = olga.post("/v1/probes/runs", body)
    assert (opened.status_code, opened.json()["calls"]) == (201, 0), opened.text
    return planted(olga, **body)


def path_of(call: dict[str, Any]) -> str:
    return f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"


def decide(caller: Caller, call: dict[str, Any], decision: str = "approve", **more: Any) -> dict[str, Any]:
    hold = caller.get(f"/v1/holds/{call['hold_id']}").json()
    body = {"decision": decision, "digest": hold["digest"], **more}
    answer = caller.post(f"/v1/holds/{call['hold_id']}/decision", body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_operators_plant_and_operators_and_analysts_list(
    doors: Doors, olga: Caller, bot: Caller, anna: Caller
) -> None:
    for caller in (anna, bot, doors.caller("ana", "analyst")):
        assert caller.post("/v1/probes", BAD).status_code == 403
    call = planted(olga)
    assert call["result"] is None
    assert (call["planted_by"], call["note"], call["answers"]) == (PLANTER, NOTE, [])
    for caller in (anna, bot):
        assert caller.get("/v1/probes").status_code == 403
    for caller in (olga, doors.caller("ana", "analyst"), doors.caller("root", "admin")):
        items = caller.get(f"/v1/probes?after={call['cursor']}").json()["items"]
        assert call["call_id"] in [one["call_id"] for one in items]
    stranger = doors.caller("olga", "operator", tenant="other")
    assert stranger.get(f"/v1/probes?after={call['cursor']}").json()["items"] == []


def test_same_key_is_the_same_planted_call_as_it_is_by_then(olga: Caller, anna: Caller) -> None:
    key = uuid4().hex
    first = olga.post("/v1/probes", BAD, key=key)
    again = olga.post("/v1/probes", BAD, key=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["execution_id"] == first.json()["execution_id"]
    decide(anna, first.json(), "reject")
    assert olga.post("/v1/probes", BAD, key=key).json()["result"] == "caught"
    assert olga.post("/v1/probes", {**BAD, "note": "another"}, key=key).status_code == 409


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"tool": "read_file", "arguments": {}}, 422, "nobody would be asked about this call"),
        ({"note": ""}, 422, "note"),
        ({"wrong": ["/iban"]}, 422, "wrong[0] names nothing in the arguments"),
        ({"wrong": ["amount"]}, 422, "wrong[0] is no JSON Pointer"),
        ({"arguments": {"amount": "a lot"}}, 422, "amount"),
        ({"secret": 1}, 422, "secret"),
    ],
)
def test_what_cannot_be_planted_is_refused(
    olga: Caller, changes: dict[str, Any], status: int, said: str
) -> None:
    refused = olga.post("/v1/probes", {**BAD, **changes})
    assert refused.status_code == status, refused.text
    assert said in refused.text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tool": "send_mony"}, "tool: no tool send_mony is published for this project"),
        ({"tool": "send_mony"}, "give one of `placet tools` (GET /v1/tools)"),
        ({"agent": "biling"}, "agent: no agent biling has done anything in this project"),
        ({"requester": "rita"}, "requester: the account rita requested no hold of the agent billing"),
        ({"requester": "root"}, "such as bot"),
        ({"requester": ""}, "requester: the account billing requested no hold of the agent billing"),
    ],
)
@pytest.mark.parametrize("route", ["/v1/probes", "/v1/probes/runs"])
def test_names_that_nobody_knows_are_refused_before_anything_is_recorded(
    olga: Caller, route: str, changes: dict[str, Any], said: str
) -> None:
    run = f"run-{uuid4().hex}"
    refused = olga.post(route, {**BAD, "execution_id": run, **changes})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), refused.text
    assert said in refused.json()["detail"]
    assert olga.get(f"/v1/executions/{run}").status_code == 404


def test_account_that_planted_calls_alone_have_is_not_known_by_them(doors: Doors) -> None:
    tenant = working(doors)
    olga, root = (
        doors.caller(name, role, tenant=tenant) for name, role in (("olga", "operator"), ("root", "admin"))
    )
    call = planted(olga)
    assert (
        root.call(
            "PUT", "/v1/principals/billing-service", {"subjects": ["other"], "agents": ["billing"]}
        ).status_code
        == 200
    )
    wait_for(lambda: olga.get(f"/v1/holds/{call['hold_id']}").status_code, lambda code: code == 200)
    assert olga.get(f"/v1/probes?after={call['cursor']}").json()["items"]
    refused = olga.post("/v1/probes", BAD)
    assert "requester: the account bot requested no hold" in refused.json()["detail"]


def test_run_is_opened_once_for_the_call_that_is_planted_in_it(olga: Caller, anna: Caller) -> None:
    assert anna.post("/v1/probes/runs", BAD).status_code == 403
    assert olga.post("/v1/probes/runs", {**BAD, "tool": "read_file", "arguments": {}}).status_code == 422
    key = uuid4().hex
    first, again = (olga.post("/v1/probes/runs", BAD, key=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    run = first.json()["execution_id"]
    assert again.json()["execution_id"] == run
    assert (first.json()["state"], first.json()["started_by"]) == ("running", "bot")
    assert olga.post("/v1/probes", {**BAD, "execution_id": run, "note": "other"}).status_code == 409
    call = planted(olga, execution_id=run)
    assert decide(anna, call)["probe"]["result"] == "missed"


# What differs from any real call to the next.
OWN = {"execution_id", "call_id", "hold_id", "event_id", "command_id", "cursor", "view_digest"}
OWN |= {"at", "partition", "offset", "started_at", "proposed_at", "opened_at", "updated_at", "deadline_at"}
# The last is how far trust is counted.
OWN |= {"deadline_at_ms", "through"}
# Times in the text of a view, and `through` in an event's JSON.
CHANGING = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+|\"through\":\{[^}]*\}")


def plain(told: Any, *ids: str) -> Any:
    """What is told of a call, without what differs from any real call to the next."""
    if isinstance(told, dict):
        return {name: plain(value, *ids) for name, value in told.items() if name not in OWN}
    if isinstance(told, list):
        return [plain(one, *ids) for one in told]
    if not isinstance(told, str):
        return told
    for one in ids:
        told = told.replace(one, "…")
    return CHANGING.sub("…", told)


def seen_of(caller: Caller, run: str, call_id: str) -> dict[str, Any]:
    """All that a reader of the project is answered about one call, its hold and its run."""
    at = f"/v1/executions/{run}"
    call = caller.get(f"{at}/tool-calls/{call_id}").json()
    hold_id = call["hold_id"]
    hold, view = (caller.get(f"/v1/holds/{hold_id}{part}").json() for part in ("", "/view"))
    events = caller.get(f"{at}/events?after={hold['cursor']}").json()["items"]
    runs = caller.get(f"/v1/executions?limit=500&after={hold['cursor']}").json()["items"]
    groups = caller.get("/v1/holds/groups").json()["items"]
    # Both are in the same group.
    (group,) = [one for one in groups if hold_id in json.dumps(one)]
    first, *rest = events
    assert first["at"] < rest[0]["at"]
    assert len({one["command_id"] for one in rest} - {first["command_id"]}) == 1
    # The form of an id tells how it was made.
    assert {one["command_id"][14] for one in events} == {"8"}
    assert [one["version"] for one in events] == [1, 2, 3, 4]
    told = {"call": call, "hold": hold, "view": view, "run": caller.get(at).json(), "events": events}
    listed = [one for one in runs if one["execution_id"] == run]
    found: dict[str, Any] = plain({**told, "listed": listed}, run, call_id, hold_id)
    return {**found, "group": group}


async def test_call_that_is_planted_later_looks_like_a_real_one(
    doors: Doors, olga: Caller, bot: Caller, anna: Caller
) -> None:
    given: dict[str, Any] = {"annotations": {"readOnlyHint": True}, "context": {"a": 1}, "reason": "due"}
    start = {"run_context": {"b": 2}, "idle_seconds": 600, "request": "pay the rent"}
    body = {"execution_id": f"run-{uuid4().hex}", "idle_seconds": 600, "request": "pay the rent"}
    async with open_socket(doors.url, anna.token) as socket:
        await socket.subscribe("holds", "events")
        call = planted_later(olga, **given, **start)
        run = bot.post("/v1/executions", {**body, "context": start["run_context"]}).json()["execution_id"]
        real = bot.propose(run, **given | {"arguments": BAD["arguments"]})
        last = await socket.next("tool_call_pending_review", execution_id=run)
    ids = [(call["execution_id"], call["call_id"]), (run, real["call_id"])]
    ours, theirs = (
        [plain(one, *names) for one in (*socket.kept, last) if names[0] in json.dumps(one)] for names in ids
    )

    assert [one["type"] for one in ours] == ["event"] * 4 + ["tool_call_pending_review"]
    assert ours == theirs
    of_planted, of_real = (seen_of(anna, *names) for names in ids)
    assert of_planted == of_real
    assert len(of_planted["listed"]) == 1
    assert of_planted["view"]["text"]


def reads(caller: Caller, call: dict[str, Any]) -> dict[str, Any]:
    """All that a reader of the project is answered about a call, its hold and its run, by path."""
    run, hold = f"/v1/executions/{call['execution_id']}", f"/v1/holds/{call['hold_id']}"
    whole = (hold, f"{hold}/view", path_of(call), run, f"{run}?at=4", f"{run}/events", f"{run}/tool-calls")
    lists = ("/v1/holds?limit=500", "/v1/holds/groups", "/v1/executions?limit=500")
    found = {}
    for path in (*whole, *lists):
        after = f"{'&' if '?' in path else '?'}after={call['cursor']}"
        answer = caller.get(path + after)
        # 202: the call waits for people.
        assert answer.status_code in (200, 202), (path, answer.text)
        found[path] = answer.json()
    assert [one["type"] for one in found[f"{run}/events"]["items"]] == [
        "ExecutionStarted",
        "ToolCallProposed",
        "PolicyVerdictIssued",
        "HoldOpened",
    ]
    return found


def test_planted_call_has_no_sensitive_values(olga: Caller) -> None:
    assert olga.call("PUT", f"/v1/tools/{sealed.TOOL}", sealed.DEFINITION).status_code == 200
    refused = olga.post("/v1/probes", {**BAD, "tool": sealed.TOOL, "arguments": sealed.PLAIN})
    assert refused.status_code == 422
    assert "a planted call cannot have sensitive values" in refused.json()["detail"]
    assert str(sealed.PLAIN["token"]) not in refused.text


async def test_nothing_that_a_reviewer_reads_tells_before_the_end_that_it_was_planted(
    doors: Doors, olga: Caller, anna: Caller, bot: Caller
) -> None:
    note = f"nobody pays account {uuid4().hex}"
    async with open_socket(doors.url, anna.token) as socket:
        await socket.subscribe("holds", "events")
        call = planted_later(olga, note=note, wrong=["/amount"], request="pay the rent", reason="due")
        run = call["execution_id"]
        opened = await socket.next("event", execution_id=run, event_type="HoldOpened")
        pending = await socket.next("tool_call_pending_review", execution_id=run)
        snapshot = await socket.subscribe(f"executions:{run}", f"calls:{run}/{call['call_id']}")
        messages = [opened, pending, *snapshot, *(one for one in socket.kept if run in json.dumps(one))]
        proposed = [one for one in messages if one.get("event_type") == "ToolCallProposed"]
        found = reads(anna, call)

        assert [sorted({"probe", "call_id"} & set(one["data"])) for one in proposed] == [["call_id"]]
        assert found[path_of(call)]["probe"] is None
        for told in (*messages, *found.items(), bot.get(path_of(call)).json()):
            assert note not in json.dumps(told)
            assert '"planted' not in json.dumps(told)
            assert PLANTER not in json.dumps(told)

        answer = decide(anna, call, "approve")
        assert answer["probe"] == {"result": "missed", "note": note, "wrong": ["/amount"]}
        ended = await socket.next("event", execution_id=run, event_type="ProbeEnded")
    assert (ended["data"]["planted_by"], ended["data"]["result"]) == (PLANTER, "missed")


def test_after_the_end_everybody_is_told_and_nothing_can_run(olga: Caller, anna: Caller, bot: Caller) -> None:
    call = planted(olga, wrong=["/amount"])
    told = decide(anna, call, "edit", edited_arguments={"amount": 8})
    assert (told["status"], told["probe"]["result"], told["next_hold"]) == ("resolved", "caught", None)
    for caller in (anna, bot):
        row = caller.get(path_of(call)).json()
        assert (row["status"], row["denied_because"]) == ("denied", "probe")
        assert row["probe"]["answers"] == [{"by": "anna", "caught": True, "decision": "edit", "person": ""}]
    assert row["arguments"] == {"amount": 7}
    used = bot.post(f"{path_of(call)}/consume", {"digest": row["digest"], "attempt_id": "a"})
    assert used.status_code == 409
    assert bot.propose(bot.execution())["status"] == "held"


def test_answers_are_counted_for_those_who_gave_them(doors: Doors, olga: Caller) -> None:
    name = f"rosa-{uuid4().hex[:8]}"
    rosa = doors.caller(name, "reviewer")
    for decision in ("approve", "reject", "reject"):
        decide(rosa, planted(olga), decision)

    def of_rosa() -> list[Any]:
        items = rosa.get("/v1/reviewers").json()["items"]
        return [one["probes"] for one in items if one["reviewer"] == name]

    (found,) = wait_for(of_rosa, lambda found: len(found) == 1 and found[0]["answered"] == 3)
    assert found == {
        "answered": 3,
        "missed": 1,
        "share": 0.333333,
        "lower": pytest.approx(0.0084, abs=0.0001),
        "upper": pytest.approx(0.9057, abs=0.0001),
        "confidence": 0.95,
    }


def test_planter_cannot_answer(olga: Caller) -> None:
    call = planted(olga)
    hold = olga.get(f"/v1/holds/{call['hold_id']}").json()
    body = {"decision": "reject", "digest": hold["digest"]}
    refused = olga.post(f"/v1/holds/{call['hold_id']}/decision", body)
    assert (refused.status_code, refused.json()["code"]) == (403, "own_request")


def test_planted_calls_are_not_among_what_the_agent_did(doors: Doors) -> None:
    tenant = working(doors)
    olga = doors.caller("olga", "operator", tenant=tenant)
    rita = doors.caller("rita", "reviewer", tenant=tenant)
    call = planted(olga)
    body = {"decision": "reject", "digest": olga.get(f"/v1/holds/{call['hold_id']}").json()["digest"]}
    assert olga.post(f"/v1/holds/{call['hold_id']}/decision", body).status_code == 403
    decide(rita, call, "reject")
    wait_for(
        lambda: rita.get("/v1/reviewers").json()["items"], lambda items: bool(items and items[0]["probes"])
    )
    assert rita.get("/v1/agents").json()["items"] == []
    assert rita.get("/v1/metrics/approval").json()["held"] == 0


def test_end_of_a_planted_call_is_read_by_consumers(doors: Doors) -> None:
    tenant = working(doors)
    olga = doors.caller("olga", "operator", tenant=tenant)
    decide(doors.caller("rita", "reviewer", tenant=tenant), planted(olga), "approve")
    stream = consume(doors.url, token=doors.token("ana", "analyst", tenant=tenant), follow=False)
    streamed = {one.type: one.data for one in stream}
    assert streamed["ProbeEnded"]["result"] == "missed"
    assert "probe" not in streamed["ToolCallProposed"]


def test_kafka_itself_has_the_mark_from_the_start(doors: Doors) -> None:
    tenant = working(doors)
    call = planted(doors.caller("olga", "operator", tenant=tenant))
    data_dir = doors.stack.data_dir
    raw = consume(
        doors.url,
        bootstrap_servers=doors.stack.status()["bootstrap_servers"],
        kafka_settings=data_dir / "kafka" / "clients" / "reader.json",
        keys_dir=data_dir / "keys",
        execution=call["execution_id"],
        follow=False,
    )
    (marked,) = [one.data["probe"] for one in raw if one.type == "ToolCallProposed"]
    assert json.loads(marked) == {"by": "olga", "note": NOTE, "wrong": []}
