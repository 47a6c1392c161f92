"""Standing rules at the doors: made of a decision, activated by another person, raced for, contradicted, revoked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from schemas.ids import execution_key
from schemas.topics import partition_of
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.servers.stack import QUOTAS, running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

PARTITIONS = 12
TOOL = {
    "annotations": {"destructiveHint": False},
    "inputSchema": {"type": "object", "properties": {"amount": {"type": "number"}}},
}
POLICY = """
policy: rules
rules:
  - id: payments
    match: {tools: [send_money]}
    then: hold
    hold: {timeout_seconds: 3600, remember: {max_uses: 100}}
  - id: gifts
    match: {tools: [send_gift]}
    then: hold
    hold: {timeout_seconds: 3600, remember: {four_eyes: false, max_uses: unlimited}}
  - id: pairs
    match: {tools: [send_wages]}
    then: hold
    hold: {timeout_seconds: 3600, quorum: 2}
"""


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """A stack of twelve partitions."""
    directory = tmp_path_factory.mktemp("rules")
    with (
        running_stack(directory, "--partitions", str(PARTITIONS), *QUOTAS) as stack,
        httpx.Client(timeout=60) as client,
    ):
        yield Doors(stack, stack.status()["url"], client)


class Shop:
    """A tenant of its own, whose payments a person may approve once and for all."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors
        self.tenant = f"shop-{uuid4().hex[:8]}"
        self.olga = self.caller("olga", "operator")
        self.rita = self.caller("rita", "reviewer")
        self.rudi = self.caller("rudi", "reviewer")
        self.bot = self.caller("bot", "agent", agent="billing")
        for tool in ("send_money", "send_gift", "send_wages"):
            assert self.olga.call("PUT", f"/v1/tools/{tool}", TOOL).status_code == 200
        yaml = {"Content-Type": "application/yaml"}
        answer = self.olga.call("PUT", "/v1/policies/rules", content=POLICY, headers=yaml)
        assert answer.status_code == 200, answer.text

    def caller(self, subject: str, *roles: str, **more: Any) -> Caller:
        return self.doors.caller(subject, *roles, tenant=self.tenant, **more)

    def approve(self, call: dict[str, Any], **remember: Any) -> httpx.Response:
        body = {"decision": "approve", "digest": call["digest"], "scope": "rule", "remember": remember}
        return self.rita.post(f"/v1/holds/{call['hold_id']}/decision", body)

    def rules(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.rita.get("/v1/standing-rules").json()["items"]
        return found

    def the_rule(self, status: str) -> dict[str, Any]:
        """The one rule, once it has a status."""
        until = time.monotonic() + 20
        while not (found := [rule for rule in self.rules() if rule["status"] == status]):
            assert time.monotonic() < until, self.rules()
            time.sleep(0.05)
        return found[0]

    def change(self, who: Caller, rule: dict[str, Any], change: str) -> tuple[int, Any]:
        answer = who.post(f"/v1/standing-rules/{rule['rule_id']}/{change}", {"reason": "because"})
        return answer.status_code, answer.json()

    def settled(self, execution_id: str, call_id: str) -> dict[str, Any]:
        """A call once it was judged."""
        until = time.monotonic() + 30
        while True:
            call: dict[str, Any] = self.bot.get(f"/v1/executions/{execution_id}/tool-calls/{call_id}").json()
            if call["status"] != "proposed":
                return call
            assert time.monotonic() < until, call
            time.sleep(0.05)

    def execution_on(self, partition: int) -> str:
        while True:
            execution_id = f"e-{uuid4().hex[:12]}"
            if partition_of(execution_key(self.tenant, "books", execution_id), PARTITIONS) == partition:
                assert self.bot.post("/v1/executions", {"execution_id": execution_id}).status_code == 201
                return execution_id


WIDE = {"arguments": {"amount": {"any": True}}}


def test_case_07_last_of_two_voters_widens_nothing_that_the_first_did_not_ask_for(shop: Shop) -> None:
    execution_id = shop.bot.execution()
    call = shop.bot.propose(execution_id, "send_wages")
    decision = f"/v1/holds/{call['hold_id']}/decision"
    once = {"decision": "approve", "digest": call["digest"]}
    assert shop.rita.post(decision, once).status_code == 200

    refused = shop.rudi.post(decision, {**once, "scope": "execution", "remember": WIDE})

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert "rita approved this once" in refused.json()["detail"]
    assert shop.rudi.post(decision, once).status_code == 200
    assert shop.bot.propose(execution_id, "send_wages", arguments={"amount": 99_999})["status"] == "held"


def test_rule_may_be_revoked_as_soon_as_the_decision_gives_its_id(shop: Shop) -> None:
    execution_id = shop.bot.execution()
    for amount in range(10):
        call = shop.bot.propose(execution_id, "send_gift", arguments={"amount": amount})
        rule = shop.approve(call, uses=5).json()["rule"]

        status, revoked = shop.change(shop.rudi, rule, "revoke")

        assert status in (200, 202), revoked
        assert (revoked["status"], revoked["used"]) == ("revoked", 0)


def test_second_voter_is_told_what_the_first_asked_to_be_remembered_and_may_agree(shop: Shop) -> None:
    execution_id = shop.bot.execution()
    call = shop.bot.propose(execution_id, "send_wages")
    path = f"/v1/holds/{call['hold_id']}"
    asking = {"decision": "approve", "digest": call["digest"], "scope": "execution", "remember": WIDE}
    assert shop.rita.post(f"{path}/decision", asking).json()["status"] == "recorded"

    (vote,) = shop.rudi.get(path).json()["votes"]
    (seen,) = shop.rudi.get(f"{path}/view").json()["seen"]
    assert (vote["scope"], vote["remember"]) == (seen["scope"], seen["remember"]) == ("execution", WIDE)

    assert shop.rudi.post(f"{path}/decision", asking).status_code == 200
    assert (
        shop.bot.propose(execution_id, "send_wages", arguments={"amount": 7})["grant"]["released_by"]
        == "rule"
    )


@pytest.fixture
def shop(twelve: Doors) -> Shop:
    return Shop(twelve)


def test_rule_with_one_use_raced_from_twelve_partitions_is_used_once(shop: Shop) -> None:
    first = shop.bot.propose(shop.bot.execution())
    answer = shop.approve(first, uses=1)
    assert answer.status_code == 200, answer.text
    made = shop.the_rule("proposed")
    assert answer.json()["rule"] == {"rule_id": made["rule_id"], "four_eyes": True}
    assert shop.change(shop.rita, made, "activate")[1]["code"] == "own_request"
    status, rule = shop.change(shop.rudi, made, "activate")
    assert (status, rule["status"], rule["adopted"]) == (200, "active", True)

    runs = [shop.execution_on(partition) for partition in range(PARTITIONS)]
    with ThreadPoolExecutor(PARTITIONS) as pool:
        calls = list(pool.map(shop.bot.propose, runs))
    ends = [shop.settled(run, call["call_id"]) for run, call in zip(runs, calls, strict=True)]

    released = [call for call in ends if call["status"] == "released"]
    assert [call["status"] for call in ends if call not in released] == ["held"] * (PARTITIONS - 1)
    (one,) = released
    assert (one["grant"]["released_by"], one["grant"]["rule_id"]) == ("rule", rule["rule_id"])
    assert f"rule:{rule['rule_id']}" in one["verdict"]["rules"]
    # The uses are read from another partition than the releases.
    shown = wait_for(
        lambda: shop.rita.get(f"/v1/standing-rules/{rule['rule_id']}").json(), lambda found: found["used"] > 0
    )
    assert (shown["uses"], shown["used"]) == (1, 1)
    assert shown["evidence"]["call_id"] == first["call_id"]


async def test_proposal_that_a_rule_with_few_uses_covers_is_answered_with_its_verdict(shop: Shop) -> None:
    """The rule's partition is asked for a use first, which takes some milliseconds more; every door waits for it."""
    assert shop.approve(shop.bot.propose(shop.bot.execution()), uses=100).status_code == 200
    assert shop.change(shop.rudi, shop.the_rule("proposed"), "activate")[0] == 200

    answers = []
    async with open_socket(shop.doors.url, shop.bot.token) as socket:
        for number in range(PARTITIONS):
            run = shop.execution_on(number)
            reply = await socket.propose(run, f"socket-{number}", "send_money")
            answers += [reply["body"], shop.bot.propose(run)]

    assert [call["status"] for call in answers] == ["released"] * 2 * PARTITIONS
    assert {call["grant"]["released_by"] for call in answers} == {"rule"}


def test_rule_is_contradicted_by_a_revocation_activated_again_and_revoked(shop: Shop) -> None:
    run = shop.bot.execution()
    assert shop.approve(shop.bot.propose(run, "send_gift"), uses=None).status_code == 200
    rule = shop.the_rule("active")
    call = shop.bot.propose(run, "send_gift")
    assert call["status"] == "released"

    answer = shop.rita.post(f"/v1/executions/{run}/tool-calls/{call['call_id']}/revoke", {"reason": "wrong"})
    assert answer.status_code == 200, answer.text
    assert shop.bot.propose(run, "send_gift")["status"] == "held"
    suspended = shop.the_rule("suspended")
    assert suspended["contradiction"]["call_id"] == call["call_id"]
    assert shop.change(shop.rudi, rule, "activate")[0] == 200
    assert shop.bot.propose(run, "send_gift")["status"] == "released"
    assert shop.change(shop.bot, rule, "revoke")[0] == 403
    assert shop.change(shop.olga, rule, "revoke")[1]["status"] == "revoked"
    assert shop.bot.propose(run, "send_gift")["status"] == "held"
    assert shop.change(shop.rudi, rule, "activate")[1]["code"] == "not_open"
    # The audit is read from the views, which are a moment behind.
    ann = shop.caller("ann", "analyst")
    told = {"ask_rule", "rule_made", "contradict_rule", "rule_suspended", "rule_activated"}
    wait_for(
        lambda: {row["action"] for row in ann.get("/v1/audit?limit=100").json()["items"]},
        lambda actions: told <= actions,
    )


def test_decision_for_the_run_covers_that_run(shop: Shop) -> None:
    run = shop.bot.execution()
    call = shop.bot.propose(run)
    body = {"decision": "approve", "digest": call["digest"], "scope": "execution"}
    assert shop.rita.post(f"/v1/holds/{call['hold_id']}/decision", body).status_code == 200
    again = shop.bot.propose(run)
    assert (again["status"], again["grant"]["rule_id"][:10]) == ("released", "execution:")
    assert shop.bot.propose(shop.bot.execution())["status"] == "held"


@pytest.mark.parametrize(
    "remember",
    [
        {"uses": 101},
        {"uses": 0},
        {"expires_seconds": 10**9},
        {"arguments": {"amount": {"at_most": 1}}},
        {"x": 1},
    ],
)
def test_decision_asking_for_more_than_the_policy_lets_be_remembered_is_refused(
    shop: Shop, remember: dict[str, Any]
) -> None:
    answer = shop.approve(shop.bot.propose(shop.bot.execution()), **remember)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert shop.rules() == []


def test_rules_of_another_tenant_are_not_found(shop: Shop) -> None:
    assert shop.approve(shop.bot.propose(shop.bot.execution(), "send_gift"), uses=None).status_code == 200
    rule = shop.the_rule("active")
    other = Shop(shop.doors)
    assert other.rules() == []
    assert other.rita.get(f"/v1/standing-rules/{rule['rule_id']}").status_code == 404
    assert other.change(other.rita, rule, "revoke")[0] == 404
    assert shop.bot.get("/v1/standing-rules").status_code == 403


def test_rule_with_few_uses_raced_while_the_decider_is_killed_is_never_used_more_often(shop: Shop) -> None:
    uses = 3
    assert shop.approve(shop.bot.propose(shop.bot.execution()), uses=uses).status_code == 200
    rule = shop.change(shop.rudi, shop.the_rule("proposed"), "activate")[1]
    runs = [shop.execution_on(partition) for partition in range(PARTITIONS)]
    names = [f"c-{uuid4().hex[:12]}" for _ in runs]

    def propose(run: str, name: str) -> None:
        body = {"call_id": name, "tool": "send_money", "arguments": {"amount": 5}}
        shop.bot.post(f"/v1/executions/{run}/tool-calls?wait=0", body)

    decider = shop.doors.stack.pid("decider")
    with ThreadPoolExecutor(PARTITIONS) as pool:
        asked = [pool.submit(propose, run, name) for run, name in zip(runs, names, strict=True)]
        time.sleep(0.02)
        os.kill(decider, signal.SIGKILL)
        for one in asked:
            one.result()
    shop.doors.stack.wait_ready()
    for run, name in zip(runs, names, strict=True):
        propose(run, name)
    ends = [shop.settled(run, name)["status"] for run, name in zip(runs, names, strict=True)]

    assert set(ends) <= {"released", "held"}
    assert ends.count("released") <= uses
    shown = wait_for(
        lambda: shop.rita.get(f"/v1/standing-rules/{rule['rule_id']}").json(),
        lambda found: found["used"] >= ends.count("released"),
    )
    assert shown["used"] <= uses
    checked = shop.doors.stack.placet("audit-log")
    assert checked.returncode == 0, checked.stdout
