"""What a run may ask for, through the real doors: its arguments, its questions, its pauses, and how much at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from schemas.limits import OPEN_MAX
from tests.integration.doors import Tenant, fresh, new_tenant, refused
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker]
PAY = {
    "name": "send_money",
    "inputSchema": {
        "type": "object",
        "properties": {"to": {"type": "string", "pattern": "^GB[0-9]+$"}, "amount": {"type": "number"}},
        "required": ["amount"],
    },
    "annotations": {"destructiveHint": True},
}
POLICY = """
policy: own
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold, hold: {timeout_seconds: 3600}}
"""


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY, PAY) as found:
        yield found


@pytest.mark.parametrize(
    ("arguments", "path", "reason"),
    [
        ({"amount": "much"}, "arguments.amount", "'much' is not of type 'number'"),
        ({"amount": 1, "to": "FR1"}, "arguments.to", "'FR1' does not match '^GB[0-9]+$'"),
        ({}, "arguments", "'amount' is a required property"),
    ],
)
def test_propose_that_does_not_fit_the_published_schema_is_422_with_path_and_reason(
    tenant: Tenant, arguments: dict[str, object], path: str, reason: str
) -> None:
    execution_id = tenant.execution()
    body = {"call_id": "c1", "tool": "send_money", "arguments": arguments}

    answer = tenant.bot.post(f"/executions/{execution_id}/tool-calls", body)

    assert refused(answer) == (422, "invalid_arguments")
    assert answer.json()["errors"] == [{"path": path, "code": "schema", "message": reason}]
    assert tenant.propose(execution_id, "send_money", {"amount": 1, "to": "GB1"})["status"] == "held"


def test_resume_of_what_a_person_paused_is_403_for_the_agent(tenant: Tenant) -> None:
    run = f"/executions/{tenant.execution()}"
    assert tenant.bot.post(f"{run}/pause").status_code == 200
    assert tenant.bot.post(f"{run}/resume").status_code == 200
    assert tenant.rita.post(f"{run}/pause").status_code == 200

    assert refused(tenant.bot.post(f"{run}/resume")) == (403, "not_authorised")
    assert tenant.bot.get(run).json()["state"] == "paused"
    assert tenant.otto.post(f"{run}/resume").status_code == 200


def test_approval_of_a_choice_is_422_and_an_option_answers_it(tenant: Tenant) -> None:
    request = {
        "request_id": fresh("q"),
        "kind": "decision",
        "question": "Where?",
        "options": ["here", "there"],
    }
    asked = tenant.bot.post("/requests", request).json()
    decision = f"/holds/{asked['hold_id']}/decision"

    approved = tenant.rita.post(decision, {"decision": "approve"})
    assert refused(approved) == (422, "invalid")
    assert "answer with one of its options" in approved.json()["detail"]
    assert refused(tenant.rita.post(decision, {"decision": "respond", "value": True})) == (
        422,
        "unknown_option",
    )
    assert tenant.rita.post(decision, {"decision": "respond", "value": "here"}).status_code == 200
    assert tenant.bot.get(f"/requests/{request['request_id']}").json()["response"] == "here"


def test_call_beyond_what_may_be_open_is_429_and_the_run_can_still_be_cancelled(tenant: Tenant) -> None:
    execution_id = tenant.execution()
    for number in range(OPEN_MAX):
        tenant.propose(execution_id, "send_money", {"amount": number}, f"c{number}")
    body = {"call_id": "more", "tool": "send_money", "arguments": {"amount": 1}}

    answer = tenant.bot.post(f"/executions/{execution_id}/tool-calls", body)

    assert refused(answer) == (429, "quota")
    assert answer.json()["retry_after"] == 1
    assert tenant.rita.post(f"/executions/{execution_id}/cancel").json()["state"] == "cancelled"
    assert tenant.call(execution_id)["status"] == "cancelled"
