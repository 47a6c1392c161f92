"""People whom a hold names, or who were handed it, decide it at every door, whatever other roles they have."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]

POLICY: dict[str, Any] = {
    "policy": "named",
    "rules": [
        {
            "id": "r",
            "then": "hold",
            "hold": {
                "reviewers": ["ana", "nobody"],
                "roles": ["cfo"],
                "timeout_seconds": 3600,
                "escalate": {"after_seconds": 3000, "roles": ["ceo"]},
            },
        }
    ],
}


class Office:
    """A tenant of its own, where calls wait for ana, for nobody, or for a cfo."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors
        self.tenant = f"office-{uuid4().hex[:8]}"
        root = self.caller("root", "admin", "operator")
        assert root.call("PUT", "/v1/tools/book", {"annotations": {"readOnlyHint": True}}).status_code == 200
        assert root.call("PUT", "/v1/policies/named", POLICY).status_code == 200
        # Whoever has no roles at all has them by a principal: no token is without.
        nobody = {"subjects": ["nobody"], "roles": []}
        assert root.call("PUT", "/v1/principals/nobody", nobody).status_code == 200
        self.bot = self.caller("bot", "agent", agent="billing")
        self.cfo = self.caller("cleo", "cfo")

    def caller(self, subject: str, *roles: str, **more: Any) -> Caller:
        return self.doors.caller(subject, *roles, tenant=self.tenant, **more)

    def held(self, **more: Any) -> dict[str, Any]:
        return self.bot.propose(self.bot.execution(), "book", **more)


@pytest.fixture
def office(doors: Doors) -> Office:
    return Office(doors)


def _decision(call: dict[str, Any], decision: str) -> dict[str, Any]:
    more: dict[str, dict[str, Any]] = {
        "edit": {"edited_arguments": {"amount": 4}},
        "respond": {"value": "no"},
    }
    return {"decision": decision, "digest": call["digest"], **more.get(decision, {})}


def _words(who: Caller, office: Office) -> dict[str, Any]:
    """Each word on a hold of its own, with its answer."""
    answers: dict[str, Any] = {}
    for decision in ("approve", "reject", "edit", "respond"):
        call = office.held()
        answers[decision] = who.post(f"/v1/holds/{call['hold_id']}/decision", _decision(call, decision))
    bodies = {
        "claim": {"seconds": 60},
        "release": {},
        "extend": {"seconds": 60},
        "escalate": {},
        "delegate": {"to": "eve"},
    }
    hold = office.held()["hold_id"]
    for verb, body in bodies.items():
        answers[verb] = who.post(f"/v1/holds/{hold}/{verb}", body)
    return answers


@pytest.mark.parametrize(
    ("subject", "roles"),
    [("ana", ["analyst"]), ("nobody", ["analyst"]), ("cara", ["analyst", "cfo"])],
    ids=["an analyst by name", "somebody without roles by name", "an analyst by role"],
)
def test_who_is_named_may_say_every_word_on_the_hold(office: Office, subject: str, roles: list[str]) -> None:
    who = office.caller(subject, *roles)
    hold = office.held()["hold_id"]

    assert who.get(f"/v1/holds/{hold}").status_code == who.get(f"/v1/holds/{hold}/view").status_code == 200
    assert hold in {one["hold_id"] for one in who.get("/v1/holds?decidable=me").json()["items"]}
    for word, answer in _words(who, office).items():
        assert answer.status_code == 200, (word, answer.text)


def test_analyst_who_was_handed_a_hold_decides_it(office: Office) -> None:
    call, dan = office.held(), office.caller("dan", "analyst")
    hold = f"/v1/holds/{call['hold_id']}"
    assert office.cfo.post(f"{hold}/delegate", {"to": "dan"}).status_code == 200

    answer = dan.post(f"{hold}/decision", _decision(call, "approve"))

    assert (answer.status_code, answer.json().get("status")) == (200, "resolved"), answer.text


def test_analyst_whom_nobody_names_is_told_whom_the_hold_asks(office: Office) -> None:
    for word, answer in _words(office.caller("ann", "analyst"), office).items():
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden_role"), (word, answer.text)
        assert (
            answer.json()["detail"]
            == "needs one of the roles, or to be one of the reviewers: cfo, ana, nobody"
        )


def test_agents_token_says_no_word_though_its_subject_is_named(office: Office) -> None:
    for word, answer in _words(office.caller("ana", "agent", agent="billing"), office).items():
        assert (answer.status_code, answer.json()["code"]) == (403, "not_authorised"), (word, answer.text)


async def test_named_analyst_decides_in_bulk_and_over_the_socket(office: Office) -> None:
    # A bulk takes no call with a value that people have not approved before.
    bulk = office.held(arguments={})
    ana, told, other = office.caller("ana", "analyst"), office.held(), office.held()
    items = [{"hold_id": bulk["hold_id"], **_decision(bulk, "approve")}]

    answer = ana.post("/v1/holds/decisions", {"items": items}).json()
    assert [one["status"] for one in answer["items"]] == ["resolved"], answer
    for who, call, status in ((ana, told, 200), (office.caller("ann", "analyst"), other, 403)):
        async with open_socket(who.url, who.token) as socket:
            reply = await socket.ask("decision", hold_id=call["hold_id"], **_decision(call, "approve"))
            assert reply["status"] == status, reply
