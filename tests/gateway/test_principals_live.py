"""People at the doors: principals published and taken back while their accounts are at work."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

POLICY = """
policy: people
rules:
  - {id: reads, match: {tools: [read_file]}, then: allow}
  - id: payments
    match: {tools: [send_money]}
    then: hold
    hold: {roles: [treasurer], quorum: 2, exclude_requester: true, timeout_seconds: 3600}
"""


class Firm:
    """A tenant of its own, where payments take two treasurers."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors
        self.tenant = f"firm-{uuid4().hex[:8]}"
        self.root = self.caller("root", "admin")
        self.bot = self.caller("bot", "agent", agent="billing")
        assert self.root.call("PUT", "/v1/tools/send_money", {}).status_code == 200
        assert self.root.call("PUT", "/v1/tools/read_file", {}).status_code == 200
        yaml = {"Content-Type": "application/yaml"}
        answer = self.root.call("PUT", "/v1/policies/people", content=POLICY, headers=yaml)
        assert answer.status_code == 200, answer.text

    def caller(self, subject: str, *roles: str, **more: Any) -> Caller:
        return self.doors.caller(subject, *roles, tenant=self.tenant, **more)

    def publish(self, name: str, *subjects: str, roles: list[str], **more: Any) -> None:
        body = {"subjects": list(subjects), "roles": roles, **more}
        answer = self.root.call("PUT", f"/v1/principals/{name}", body)
        assert answer.status_code == 200, answer.text

    def payment(self) -> dict[str, Any]:
        return self.bot.propose(self.bot.execution())

    def decide(self, who: Caller, call: dict[str, Any], decision: str = "approve") -> tuple[int, Any]:
        answer = who.post(
            f"/v1/holds/{call['hold_id']}/decision", {"decision": decision, "digest": call["digest"]}
        )
        return answer.status_code, answer.json()


@pytest.fixture
def firm(doors: Doors) -> Firm:
    return Firm(doors)


def test_payment_takes_two_people_and_one_person_with_two_accounts_is_one(firm: Firm) -> None:
    firm.publish("mia-m", "mia", "mia@old", roles=["reviewer", "treasurer"])
    firm.publish("tom-t", "tom", roles=["treasurer"])
    mia, again = firm.caller("mia", "reviewer"), firm.caller("mia@old", "reviewer", "treasurer")
    call = firm.payment()

    assert firm.decide(mia, call)[1]["status"] == "recorded"
    status, body = firm.decide(again, call)
    assert (status, body["code"]) == (409, "already_voted")
    assert firm.decide(firm.caller("tom", "analyst"), call)[1]["status"] == "resolved"


def test_role_that_only_a_token_claims_opens_no_door_once_the_principal_is_published(firm: Firm) -> None:
    eve = firm.caller("eve", "admin")
    assert eve.get("/v1/audit").status_code == 200

    firm.publish("eve-e", "eve", roles=["reviewer"])

    assert eve.get("/v1/audit").status_code == 403
    assert (
        eve.call("PUT", "/v1/principals/eve-e", {"subjects": ["eve"], "roles": ["admin"]}).status_code == 403
    )
    status, body = firm.decide(eve, firm.payment())
    assert (status, body["code"]) == (403, "forbidden_role")


def test_consume_after_an_approver_lost_the_role_is_held_again(firm: Firm) -> None:
    firm.publish("mia-m", "mia", roles=["treasurer"])
    firm.publish("tom-t", "tom", roles=["treasurer"])
    firm.publish("zoe-z", "zoe", roles=["treasurer"])
    call = firm.payment()
    for name in ("mia", "tom"):
        firm.decide(firm.caller(name, "reviewer"), call)

    firm.publish("tom-t", "tom", roles=["analyst"])

    where = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"
    refused = firm.bot.post(f"{where}/consume", {"digest": call["digest"], "attempt_id": "a1"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_released")
    held = firm.bot.get(where).json()
    assert (held["status"], held["hold_id"] == call["hold_id"]) == ("held", False)


@pytest.mark.parametrize("change", [{"roles": ["analyst"]}, {"roles": ["reviewer"], "disabled": True}])
async def test_socket_of_an_account_whose_roles_change_gets_nothing_more_and_is_closed(
    firm: Firm, change: dict[str, Any]
) -> None:
    firm.publish("ann-a", "ann", roles=["reviewer"])
    ann = firm.caller("ann", "admin")
    async with open_socket(ann.url, ann.token) as socket:
        await socket.subscribe("holds")

        await asyncio.to_thread(lambda: firm.publish("ann-a", "ann", **change))
        await asyncio.to_thread(firm.payment)

        with pytest.raises(ConnectionClosed) as closed:
            await socket.next("tool_call_pending_review")
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"subjects": []}, "subjects"),
        ({"subjects": ["placet:timer"]}, "subjects[0]"),
        ({"subjects": ["a"], "roles": ["system"]}, "roles"),
        ({"subjects": ["a"], "roles": ["agent"]}, "roles"),
        ({"subjects": ["a"], "rolls": ["reviewer"]}, "rolls"),
        ({"subjects": ["taken"]}, ""),
    ],
)
def test_publish_principal_that_cannot_be_is_refused_with_its_path(
    firm: Firm, body: dict[str, Any], path: str
) -> None:
    firm.publish("owner", "taken", roles=[])

    answer = firm.root.call("PUT", "/v1/principals/p", body)

    assert answer.status_code == 422
    if path:
        assert answer.json()["errors"][0]["path"] == path


def test_principals_are_listed_as_they_are_in_force_to_readers_only(firm: Firm) -> None:
    firm.publish("mia-m", "mia", roles=["treasurer"])
    firm.publish("mia-m", "mia", "mia@old", roles=["treasurer"], agents=["billing"])

    (found,) = firm.root.get("/v1/principals").json()["items"]
    assert (found["principal"], found["version"], found["subjects"]) == ("mia-m", 2, ["mia", "mia@old"])
    assert found["agents"] == ["billing"]
    assert firm.bot.get("/v1/principals").status_code == 403


def test_claim_is_a_lease_of_so_many_seconds_and_nothing_else(firm: Firm) -> None:
    firm.publish("mia-m", "mia", roles=["reviewer", "treasurer"])
    mia, tom = firm.caller("mia", "reviewer"), firm.caller("tom", "reviewer", "treasurer")
    hold = f"/v1/holds/{firm.payment()['hold_id']}"

    assert mia.post(f"{hold}/claim", {"seconds": 0}).status_code == 422
    assert mia.post(f"{hold}/claim", {"seconds": 3_601}).status_code == 422
    claimed = mia.post(f"{hold}/claim", {"seconds": 1}).json()
    assert (claimed["claimed_by"], claimed["claimed_until"] is None) == ("mia", False)

    deadline = time.monotonic() + 30
    while (taken := tom.post(f"{hold}/claim")).status_code != 200:
        assert time.monotonic() < deadline, taken.text
        time.sleep(0.1)
    assert taken.json()["claimed_by"] == "tom"


async def test_who_may_decide_a_hold_may_see_it_and_nothing_else(doors: Doors) -> None:
    firm = Firm(doors)
    assert firm.root.call("PUT", "/v1/tools/delete_file", {}).status_code == 200
    tess = firm.caller("tess", "treasurer")
    async with open_socket(doors.url, tess.token) as socket:
        await socket.send(type="subscribe", channels=["holds"])
        assert (await socket.next("snapshot", channel="holds"))["items"] == []
        other = firm.bot.propose(firm.bot.execution(), "delete_file")
        call = firm.payment()
        told = await socket.next("tool_call_pending_review")
        assert told["hold_id"] == call["hold_id"]
        assert not [kept for kept in socket.kept if kept.get("hold_id") == other["hold_id"]]

        await socket.send(type="subscribe", channels=["holds"], cursor=told["cursor"])
        second = firm.payment()
        assert (await socket.next("tool_call_pending_review"))["hold_id"] == second["hold_id"]
        await socket.send(type="subscribe", channels=["holds"])
        shown = (await socket.next("snapshot", channel="holds"))["items"]
        assert [hold["hold_id"] for hold in shown] == [call["hold_id"], second["hold_id"]]

    path = f"/v1/holds/{call['hold_id']}"
    both = [call["hold_id"], second["hold_id"]]
    for query in ("status=open", "decidable=me", ""):
        wait_for(partial(_listed, tess, query), both.__eq__)
    assert [tess.get(found).status_code for found in (path, f"{path}/view")] == [200, 200]
    assert [group["count"] for group in tess.get("/v1/holds/groups").json()["items"]] == [2]
    hidden = tess.get(f"/v1/holds/{other['hold_id']}")
    assert (hidden.status_code, hidden.json()["code"]) == (403, "not_authorised")
    assert tess.get(f"/v1/executions/{call['execution_id']}").status_code == 403
    assert firm.caller("nobody", "stranger").get("/v1/holds").json()["items"] == []
    assert firm.caller("nobody", "stranger").get(path).status_code == 403

    assert firm.decide(tess, call, "reject")[0] == 200
    wait_for(partial(_listed, tess, f"status=resolved&prefix={call['hold_id'][:12]}"), both[:1].__eq__)


def test_what_i_may_decide_is_by_the_people_of_my_project(doors: Doors) -> None:
    firm = Firm(doors)
    call, tom = firm.payment(), firm.caller("tom", "treasurer")
    assert _listed(tom, "decidable=me") == [call["hold_id"]]
    # Whose agent asks is excluded by the rule, and that it is his is known in the project only.
    firm.publish("tommy", "tom", roles=["treasurer"], agents=["billing"])
    assert _listed(tom, "decidable=me") == []


GONE: dict[str, dict[str, Any]] = {
    "disabled": {"roles": ["treasurer"], "disabled": True},
    "role lost": {"roles": []},
    "account taken": {"roles": ["treasurer"], "subjects": ["dora@old"]},
}


@pytest.mark.parametrize("change", GONE.values(), ids=GONE)
def test_delegate_of_somebody_who_may_decide_no_more_sees_and_decides_nothing(
    firm: Firm, change: dict[str, Any]
) -> None:
    firm.publish("dora-d", "dora", "dora@old", roles=["treasurer"])
    firm.publish("tom-t", "tom", roles=["treasurer"])
    dora, bob, tom = (
        firm.caller("dora", "treasurer"),
        firm.caller("bob", "clerk"),
        firm.caller("tom", "analyst"),
    )
    before, voted, let_run = firm.payment(), firm.payment(), firm.payment()
    for call in (before, voted, let_run):
        assert dora.post(f"/v1/holds/{call['hold_id']}/delegate", {"to": "bob"}).status_code == 200
    assert set(_listed(bob, "decidable=me")) == {call["hold_id"] for call in (before, voted, let_run)}
    assert firm.decide(bob, voted)[1]["status"] == "recorded"
    assert firm.decide(bob, let_run)[1]["status"] == "recorded"
    assert firm.decide(tom, let_run)[1]["status"] == "resolved"

    answer = firm.root.call("PUT", "/v1/principals/dora-d", {"subjects": ["dora", "dora@old"], **change})
    assert answer.status_code == 200, answer.text

    assert _listed(bob, "decidable=me") == []
    assert before["hold_id"] not in _listed(bob, "")
    hold = f"/v1/holds/{before['hold_id']}"
    assert bob.get(hold).status_code == 403
    for act, body in (("extend", {"seconds": 60}), ("claim", {"seconds": 60}), ("delegate", {"to": "eve"})):
        answer = bob.post(f"{hold}/{act}", body)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden_role"), answer.text
    assert firm.decide(bob, before)[1]["code"] == "forbidden_role"
    # With bob's word for nobody one treasurer is not two.
    assert firm.decide(tom, voted)[1]["status"] == "recorded"
    place = f"/v1/executions/{let_run['execution_id']}/tool-calls/{let_run['call_id']}/consume"
    refused = firm.bot.post(place, {"digest": let_run["digest"], "attempt_id": "a1"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_released"), refused.text


def _listed(who: Caller, query: str) -> list[str]:
    return [hold["hold_id"] for hold in who.get(f"/v1/holds?{query}").json()["items"]]


def test_impact_of_who_handed_a_hold_on_and_of_a_name_that_nobody_bears(firm: Firm) -> None:
    firm.publish("tom-t", "tom", roles=["treasurer"])
    firm.publish("mia-m", "mia", roles=["reviewer"])
    tom, mia = firm.caller("tom", "analyst"), firm.caller("mia", "reviewer")
    call = firm.payment()
    hold = f"/v1/holds/{call['hold_id']}"
    firm.publish("ann-a", "ann", roles=["treasurer"])
    handed = [tom.post(f"{hold}/delegate", {"to": name}) for name in ("nobody@nowhere", "mia", "mia-m")]
    assert [(one.status_code, one.json()["assignee_known"]) for one in handed] == [
        (200, False),
        (200, True),
        (200, True),
    ]
    assert firm.decide(mia, call)[1]["status"] == "recorded"
    assert firm.decide(firm.caller("ann", "analyst"), call)[1]["status"] == "resolved"
    place = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"
    consumed = firm.bot.post(f"{place}/consume", {"digest": call["digest"], "attempt_id": "a1"})
    assert consumed.status_code == 200, consumed.text

    def impact(**asked: str) -> Any:
        return firm.root.get("/v1/audit/impact", params={**asked, "after": consumed.json()["cursor"]})

    for name in ("tom-t", "tom", "mia-m", "mia", "ann"):
        answer = impact(reviewer=name)
        assert [one["call_id"] for one in answer.json()["items"]] == [call["call_id"]], (name, answer.text)
    for known in ({"reviewer": "root"}, {"rule": "people/reads"}, {"rule": "people@1/reads"}):
        assert (impact(**known).status_code, impact(**known).json()["items"]) == (200, [])
    for unknown in (
        {"reviewer": "nobody"},
        {"rule": "people/nosuch"},
        {"rule": "people@2/reads"},
        {"rule": "zzz"},
        {"grant": "zzz"},
    ):
        answer = impact(**unknown)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (unknown, answer.text)
