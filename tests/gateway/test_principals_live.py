"""People at the doors: principals published and taken back while their accounts are at work."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(180)]

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
