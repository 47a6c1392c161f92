"""Cases 6 to 9 and 13 of the abuse list: who may decide, how often one person counts, and from which page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import websockets
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.integration.doors import Caller, Tenant, new_tenant, refused
from tests.integration.site import PAY, READ, Site

pytestmark = [pytest.mark.stack, pytest.mark.broker]

WIRE = {**PAY, "name": "wire_money"}
POLICY = """
policy: own
rules:
  - id: large-edits
    match: {tools: [send_money]}
    when: edited && args.amount > 100.0
    then: hold
    hold: {roles: [treasurer], quorum: 2, exclude_requester: true}
  - {id: payments, match: {tools: [send_money]}, then: hold, hold: {exclude_requester: true}}
  - {id: wires, match: {tools: [wire_money]}, then: hold, hold: {roles: [treasurer], quorum: 2}}
"""


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY, PAY, WIRE, READ) as found:
        yield found


def publish(tenant: Tenant, name: str, *subjects: str, roles: list[str], **more: Any) -> None:
    answer = tenant.admin.ask("PUT", f"/principals/{name}", {"subjects": subjects, "roles": roles, **more})
    assert answer.status_code == 200, answer.text


def treasurer(tenant: Tenant, subject: str) -> Caller:
    return tenant.caller(subject, "reviewer", "treasurer")


def refusals(tenant: Tenant, execution_id: str) -> list[tuple[str, str]]:
    """Who was refused a decision, and why, as the log has it."""
    items = tenant.admin.get(f"/executions/{execution_id}/events?limit=200").json()["items"]
    return [(item["data"]["by"], item["data"]["code"]) for item in items if item["type"] == "DecisionRefused"]


@pytest.mark.parametrize("behind", ["the one who started it", "the person whose agent it is"])
def test_case_06_own_request_is_forbidden_and_recorded(tenant: Tenant, behind: str) -> None:
    olga = tenant.caller("olga", "operator", "reviewer")
    if behind == "the one who started it":
        execution_id = olga.post("/executions", {"agent": "bot"}).json()["execution_id"]
        own = olga
    else:
        publish(tenant, "paula-p", "paula", roles=["reviewer"], agents=["bot"])
        execution_id, own = tenant.execution(), tenant.caller("paula", "reviewer")
    call = tenant.propose(execution_id, "send_money", {"to": "GB29", "amount": 5.0})

    assert refused(tenant.decide(call, by=own)) == (403, "own_request")

    assert refusals(tenant, execution_id) == [(own_name(own, olga), "own_request")]
    assert tenant.call(execution_id)["status"] == "held"
    assert tenant.decide(call).status_code == 200


def own_name(own: Caller, olga: Caller) -> str:
    return "olga" if own is olga else "paula"


def test_case_06_editor_of_a_call_cannot_approve_it(tenant: Tenant) -> None:
    execution_id, call = tenant.held()
    edited = tenant.decide(call, "edit", edited_arguments={"to": "GB29", "amount": 4.0})
    assert edited.json()["status"] == "resolved"
    now = tenant.call(execution_id)

    assert (now["status"], now["revision"]) == ("held", 2)
    assert refused(tenant.decide(now)) == (403, "own_request")
    assert refusals(tenant, execution_id) == [("rita", "own_request")]
    assert tenant.decide(now, by=tenant.otto).status_code == 200


@pytest.mark.parametrize("known", ["before the last vote", "before the run"])
def test_case_06_approval_by_who_turns_out_to_be_the_editor_counts_no_more(
    tenant: Tenant, known: str
) -> None:
    name = "theo-" + known.replace(" ", "-")
    theo, second, tina = (treasurer(tenant, f"{who}-{name}") for who in ("first", "second", "tina"))
    publish(tenant, name, f"first-{name}", roles=["reviewer", "treasurer"])
    execution_id, first = tenant.held()
    tenant.decide(first, "edit", by=second, edited_arguments={"to": "GB29", "amount": 5_000.0})
    call = tenant.call(execution_id)
    assert tenant.decide(call, by=theo).json()["status"] == "recorded"
    if known == "before the run":
        assert tenant.decide(call, by=tina).json()["status"] == "resolved"

    publish(tenant, name, f"first-{name}", f"second-{name}", roles=["reviewer", "treasurer"])

    if known == "before the run":
        assert refused(tenant.consume(execution_id, call["digest"])) == (409, "not_released")
    else:
        assert tenant.decide(call, by=tina).json()["status"] == "recorded"
    assert tenant.call(execution_id)["status"] == "held"
    assert "GrantConsumed" not in tenant.events(execution_id)


def test_case_07_one_person_with_two_accounts_counts_once(tenant: Tenant) -> None:
    publish(tenant, "mia-m", "mia", "mia@old", roles=["reviewer", "treasurer"])
    execution_id, call = tenant.held("wire_money")

    first = tenant.decide(call, by=treasurer(tenant, "mia"))
    again = tenant.decide(call, by=treasurer(tenant, "mia@old"))

    assert first.json()["status"] == "recorded"
    assert refused(again) == (409, "already_voted")
    assert refusals(tenant, execution_id) == [("mia@old", "already_voted")]
    assert tenant.decide(call, by=treasurer(tenant, "tom")).json()["status"] == "resolved"


@pytest.mark.parametrize("loss", [{"roles": ["reviewer"]}, {"roles": ["treasurer"], "disabled": True}])
def test_case_08_role_lost_before_the_run_is_seen_at_consumption(
    tenant: Tenant, loss: dict[str, Any]
) -> None:
    publish(tenant, "zoe-z", "zoe", roles=["reviewer", "treasurer"])
    execution_id, call = tenant.held("wire_money")
    for subject in ("zoe", "tom"):
        assert tenant.decide(call, by=treasurer(tenant, subject)).status_code == 200
    assert tenant.call(execution_id)["status"] == "released"

    publish(tenant, "zoe-z", "zoe", **loss)

    assert refused(tenant.consume(execution_id, call["digest"])) == (409, "not_released")
    now = tenant.call(execution_id)
    assert (now["status"], now["hold_id"] == call["hold_id"]) == ("held", False)
    assert "GrantConsumed" not in tenant.events(execution_id)


def test_case_08_role_that_an_account_lost_counts_no_more_whatever_its_token_says(tenant: Tenant) -> None:
    publish(tenant, "ned-n", "ned", roles=["reviewer"])
    execution_id, call = tenant.held("wire_money")

    assert refused(tenant.decide(call, by=treasurer(tenant, "ned"))) == (403, "forbidden_role")
    assert refusals(tenant, execution_id) == [("ned", "forbidden_role")]


def test_case_09_edit_is_judged_again_under_its_new_digest_and_may_ask_for_more_people(
    tenant: Tenant,
) -> None:
    execution_id, call = tenant.held()

    edited = tenant.decide(call, "edit", edited_arguments={"to": "GB29", "amount": 5_000.0})

    now = tenant.call(execution_id)
    assert edited.json()["status"] == "resolved"
    assert (now["status"], now["revision"], now["digest"] == call["digest"]) == ("held", 2, False)
    assert any(rule.endswith("/large-edits") for rule in now["verdict"]["rules"])
    assert refused(tenant.decide(call, by=tenant.otto)) == (409, "already_decided")
    assert refused(tenant.decide({**now, "digest": call["digest"]}, by=treasurer(tenant, "tom"))) == (
        409,
        "digest_mismatch",
    )
    assert tenant.decide(now, by=treasurer(tenant, "tom")).json()["status"] == "recorded"
    assert refused(tenant.consume(execution_id, now["digest"])) == (409, "not_released")
    assert tenant.decide(now, by=treasurer(tenant, "uma")).json()["status"] == "resolved"
    assert tenant.consume(execution_id, now["digest"]).status_code == 200


def test_case_09_edit_whose_editor_is_excluded_names_the_hold_that_waits_and_what_may_be_decided(
    tenant: Tenant,
) -> None:
    execution_id, call = tenant.held()

    edited = tenant.decide(call, "edit", edited_arguments={"to": "GB29", "amount": 4.0}).json()

    now = tenant.call(execution_id)
    waiting = edited["next_hold"]
    assert (now["status"], waiting["hold_id"], waiting["digest"]) == ("held", now["hold_id"], now["digest"])
    assert (waiting["exclude_requester"], waiting["quorum"], waiting["counted"]) == (True, 1, 0)
    assert tenant.otto.get(f"/holds/{waiting['hold_id']}").json()["options"] == edited["hold"]["options"]
    approved = tenant.decide(now, by=tenant.otto).json()
    assert (approved["status"], approved["next_hold"], approved["rule"]) == ("resolved", None, None)


def test_case_09_edit_that_the_policy_denies_leaves_the_hold_open(tenant: Tenant) -> None:
    deny = {"id": "never", "match": {"tools": ["send_money"]}, "when": "args.amount > 9000.0", "then": "deny"}
    answer = tenant.admin.ask(
        "PUT",
        "/policies/bots",
        {
            "policy": "bots",
            "scope": {"agent": "bot"},
            "rules": [deny, {"id": "else", "match": {"tools": ["send_money"]}, "then": "hold"}],
        },
    )
    assert answer.status_code == 200, answer.text
    execution_id, call = tenant.held()

    denied = tenant.decide(call, "edit", edited_arguments={"to": "GB29", "amount": 9_999.0})

    assert refused(denied) == (422, "edit_denied")
    now = tenant.call(execution_id)
    assert (now["status"], now["digest"], now["revision"]) == ("held", call["digest"], 1)
    assert tenant.decide(call).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1.evil.example", "null", "http://localhost:1"]
)
async def test_case_13_socket_of_a_page_from_elsewhere_is_refused_before_it_opens(
    tenant: Tenant, origin: str
) -> None:
    url = tenant.site.url.replace("http", "ws") + "/v1/ws"
    headers = {"Authorization": f"Bearer {tenant.rita.token}"}

    with pytest.raises(InvalidStatus) as refusal:
        await websockets.connect(url, origin=Origin(origin), additional_headers=headers)

    assert refusal.value.response.status_code == 403


def test_case_13_answers_let_no_page_from_elsewhere_read_them(tenant: Tenant) -> None:
    answer = tenant.rita.get("/holds?status=open", headers={"Origin": "https://evil.example"})

    assert "access-control-allow-origin" not in answer.headers
