"""What a person is shown of a hold: the very text that the log names, before and after everything that follows."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

LONG = {"amount": 5, "note": "x" * 3_000}


def held(bot: Caller, anna: Caller, arguments: dict[str, Any]) -> dict[str, Any]:
    call = bot.propose(bot.execution(), arguments=arguments)
    found: dict[str, Any] = anna.get(f"/v1/holds/{call['hold_id']}").json()
    return found


def view(caller: Caller, hold: dict[str, Any], **query: str) -> dict[str, Any]:
    answer = caller.get(f"/v1/holds/{hold['hold_id']}/view", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def opened(anna: Caller, hold: dict[str, Any]) -> dict[str, Any]:
    """The fact that opened the hold, as the log has it."""

    def read() -> list[dict[str, Any]]:
        items = anna.get(f"/v1/executions/{hold['execution_id']}/events").json()["items"]
        return [
            one["data"]
            for one in items
            if one["type"] == "HoldOpened" and one["data"]["hold_id"] == hold["hold_id"]
        ]

    return wait_for(read, bool)[0]


def decide(caller: Caller, hold: dict[str, Any], decision: str = "approve", **more: Any) -> Any:
    body = {"decision": decision, "digest": hold["digest"], **more}
    return caller.post(f"/v1/holds/{hold['hold_id']}/decision", body)


def told_of(anna: Caller, hold: dict[str, Any]) -> list[Any]:
    """What the lists and groups say of the digest of a hold's view."""
    items = anna.get("/v1/holds?status=open&limit=500").json()["items"]
    groups = anna.get("/v1/holds/groups").json()["items"]
    like = [one for group in groups for one in group["holds"]]
    found = [one for one in (*items, *like) if one["hold_id"] == hold["hold_id"]]
    return [one["view_digest"] for one in found]


def test_view_of_a_hold_is_the_text_that_the_log_names(bot: Caller, anna: Caller) -> None:
    hold = held(bot, anna, {"amount": 5, "to": "p\u0430ypal\u202e", "html": "<script>x</script>"})
    shown = view(anna, hold)
    recorded = opened(anna, hold)
    assert sha256(shown["text"].encode()).hexdigest() == shown["view_digest"]
    assert (hold["view_digest"], recorded["view_digest"]) == (None, ""), "it comes with the view alone"
    assert shown["badges"] == hold["badges"] == ["bidi", "homoglyph", "markup"]
    assert shown["must_read"] is hold["must_read"] is True
    assert shown["truncated"] is False
    assert '"to": "p\\u{430}ypal\\u{202e}"' in shown["text"]
    assert recorded["risk_level"] == hold["risk"]["level"]


def test_view_and_hold_say_first_what_the_run_was_asked_for(bot: Caller, anna: Caller) -> None:
    run = bot.post("/v1/executions", {"request": "Pay the March invoice."}).json()["execution_id"]
    call = bot.propose(run, arguments={"amount": 5})
    hold = anna.get(f"/v1/holds/{call['hold_id']}").json()
    shown = view(anna, hold)
    assert hold["request"] == "Pay the March invoice."
    assert (hold["view_version"], shown["version"]) == (11, 11)
    assert shown["text"].splitlines()[2] == "asked of the agent: Pay the March invoice."
    assert opened(anna, hold)["view_version"] == 11
    items = anna.get("/v1/holds?status=open&limit=500").json()["items"]
    (listed,) = [one for one in items if one["hold_id"] == hold["hold_id"]]
    assert listed["request"] == hold["request"]


def test_view_after_everything_that_follows_is_still_the_same(
    bot: Caller, anna: Caller, doors: Doors
) -> None:
    hold = held(bot, anna, {"amount": 7})
    before = view(anna, hold)
    hold_path = f"/v1/holds/{hold['hold_id']}"
    assert anna.post(f"{hold_path}/extend", {"seconds": 500}).status_code == 200
    assert anna.post(f"{hold_path}/claim", {}).status_code == 200
    assert view(anna, hold)["text"] == before["text"]
    assert anna.get(f"{hold_path}/view", params={"at": "decision"}).json()["code"] == "not_found"
    assert decide(anna, hold, view_digest=before["view_digest"]).status_code == 200
    assert anna.post(f"/v1/executions/{hold['execution_id']}/cancel", {}).status_code == 200
    after = view(anna, hold, at="decision")
    assert after["text"] == before["text"]
    assert [vote["view_digest"] for vote in after["seen"]] == [before["view_digest"]]


def test_view_of_a_request_is_the_text_that_the_log_names(bot: Caller, anna: Caller) -> None:
    body = {
        "request_id": f"ask-{bot.execution()}",
        "kind": "decision",
        "question": "Which?\none",
        "options": ["a", "b"],
    }
    asked = bot.post("/v1/requests", body).json()
    hold = anna.get(f"/v1/holds/{asked['hold_id']}").json()
    shown = view(anna, hold)
    assert sha256(shown["text"].encode()).hexdigest() == shown["view_digest"]
    assert opened(anna, hold)["view_digest"] == ""
    assert hold["view_digest"] == (None if hold["must_read"] else shown["view_digest"])
    assert 'options: ["a", "b"]' in shown["text"]


def test_view_of_an_edited_call_shows_what_the_agent_proposed(
    bot: Caller, anna: Caller, doors: Doors
) -> None:
    call = bot.propose(bot.execution(), "unknown_tool", arguments={"amount": 900, "to": "GB29"})
    hold = anna.get(f"/v1/holds/{call['hold_id']}").json()
    assert view(anna, hold)["diff"] is None
    edited = decide(anna, hold, "edit", edited_arguments={"amount": 50, "memo": "half"})
    assert edited.status_code == 200, edited.text
    again = bot.get(f"/v1/executions/{hold['execution_id']}/tool-calls/{call['call_id']}").json()
    assert again["revision"] == 2
    # The editor's word suffices here, so the edit is held again only for who asks for its view at the decision.
    assert view(anna, hold, at="decision")["text"] == view(anna, hold)["text"]


def test_approve_of_a_long_hold_without_its_view_is_refused(bot: Caller, anna: Caller) -> None:
    hold = held(bot, anna, LONG)
    refused = decide(anna, hold)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert f"/v1/holds/{hold['hold_id']}/view" in refused.json()["detail"]
    other = decide(anna, hold, view_digest="0" * 64)
    assert (other.status_code, other.json()["code"]) == (409, "digest_mismatch")
    many = anna.post("/v1/holds/decisions", {"items": [{"hold_id": hold["hold_id"], "decision": "approve"}]})
    assert many.json()["items"][0]["status"] == 422
    assert told_of(anna, hold) == [None, None]
    view_digest = view(anna, hold)["view_digest"]
    assert decide(anna, hold, view_digest=view_digest).json()["status"] == "resolved"
    assert view_digest not in anna.get(f"/v1/holds/{hold['hold_id']}").text
    assert view_digest not in anna.get(f"/v1/executions/{hold['execution_id']}/events").text


def test_reject_of_a_long_hold_needs_no_view(bot: Caller, anna: Caller) -> None:
    assert decide(anna, held(bot, anna, LONG), "reject").status_code == 200


def test_decision_after_a_look_has_how_long_it_was(bot: Caller, anna: Caller, doors: Doors) -> None:
    analyst = doors.caller("ada", "analyst")
    looked, unseen = held(bot, anna, {"amount": 8}), held(bot, anna, {"amount": 9})
    view(anna, looked)
    first = decide(anna, looked)
    again = decide(anna, looked)
    assert first.json()["decision_id"] == again.json()["decision_id"]
    # Nobody sees a body that HEAD does not have.
    assert anna.call("HEAD", f"/v1/holds/{unseen['hold_id']}/view").status_code == 200
    assert decide(anna, unseen).status_code == 200
    votes = [anna.get(f"/v1/holds/{hold['hold_id']}").json()["votes"][0] for hold in (looked, unseen)]
    assert votes[0]["dwell_ms"] >= 0
    assert votes[1]["dwell_ms"] is None
    rows = wait_for(
        lambda: analyst.get("/v1/audit", params={"subject": "anna", "limit": "500"}).json()["items"],
        lambda items: any(row["hold_id"] == unseen["hold_id"] for row in items),
    )
    dwelt = {row["hold_id"]: row["dwell_ms"] for row in rows if row["action"] == "approve"}
    assert dwelt[looked["hold_id"]] == votes[0]["dwell_ms"]
    assert dwelt[unseen["hold_id"]] is None
    reviewers = {one["reviewer"]: one for one in analyst.get("/v1/reviewers").json()["items"]}
    assert reviewers["anna"]["average_dwell_ms"] >= 0


def test_view_is_for_who_may_read_the_hold(bot: Caller, anna: Caller, doors: Doors) -> None:
    hold = held(bot, anna, {"amount": 5})
    path = f"/v1/holds/{hold['hold_id']}/view"
    assert bot.get(path).status_code == 200
    assert doors.caller("other-bot", "agent", agent="another").get(path).json()["code"] == "not_authorised"
    assert doors.caller("olaf", "reviewer", tenant="other").get(path).json()["code"] == "not_found"
    assert doors.caller("olaf", "reviewer", tenant="other").get("/v1/holds/groups").json()["items"] == []
    assert bot.get("/v1/holds/groups").json()["code"] == "not_authorised"
    assert anna.get(path, params={"at": "noon"}).json()["code"] == "invalid"


def test_holds_that_are_alike_are_one_group_with_every_digest(doors: Doors, anna: Caller) -> None:
    crawler = doors.caller("crawler", "agent", agent="crawler")
    execution_id = crawler.execution()
    alike = [crawler.propose(execution_id, arguments={"amount": amount}) for amount in range(5)]
    other = crawler.propose(execution_id, arguments={"amount": 1, "memo": "x"})
    groups = anna.get("/v1/holds/groups", params={"agent": "crawler"}).json()["items"]
    assert [(group["tool"], group["count"]) for group in groups] == [("send_money", 5), ("send_money", 1)]
    assert groups[0]["shape"] == '{"amount":"number"}'
    assert {one["hold_id"]: one["digest"] for one in groups[0]["holds"]} == {
        call["hold_id"]: call["digest"] for call in alike
    }
    assert [one["hold_id"] for one in groups[1]["holds"]] == [other["hold_id"]]


@pytest.mark.parametrize("field", ["view_digest", "must_read", "badges"])
def test_snapshot_of_holds_has_what_a_reviewer_needs(bot: Caller, anna: Caller, field: str) -> None:
    held(bot, anna, {"amount": 5})
    assert all(field in hold for hold in anna.get("/v1/holds", params={"status": "open"}).json()["items"])


def test_permission_with_something_hidden_is_given_with_its_view_alone(bot: Caller, anna: Caller) -> None:
    words = {"kind": "permission", "question": "Go on?", "tool": "shell", "action": "rm \u202e-rf\u202c"}
    asked = bot.post("/v1/requests", words).json()
    hold = anna.get(f"/v1/holds/{asked['hold_id']}").json()
    assert hold["must_read"]
    at_the_chat = {"request_id": asked["request_id"], "response": True}
    refused = [
        anna.post("/agent/hitl/respond", at_the_chat),
        decide(anna, hold),
        decide(anna, hold, "respond", value=True),
    ]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [(422, "invalid")] * 3
    assert all("view_digest" in one.json()["detail"] for one in refused)
    seen = view(anna, hold)["view_digest"]
    assert decide(anna, hold, "respond", value=True, view_digest=seen).status_code == 200


def test_permission_with_something_hidden_is_refused_without_a_view(bot: Caller, anna: Caller) -> None:
    words = {"kind": "permission", "question": "Go on?\u202e", "tool": "shell", "action": "ls"}
    asked = bot.post("/v1/requests", words).json()
    answer = anna.post("/agent/hitl/respond", {"request_id": asked["request_id"], "response": False})
    assert answer.status_code == 200, answer.text
