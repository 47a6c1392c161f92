"""A request's id is unique in its execution: who names only it is never given another run's answer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from placet import Placet, Refused
from schemas.limits import REQUEST_MAX_BYTES, TEXT_MAX_CHARS
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def fresh() -> str:
    return f"iban-{uuid4().hex[:10]}"


def asked(caller: Caller, request_id: str, **more: Any) -> dict[str, Any]:
    """A question of a fresh execution."""
    body = {"kind": "clarification", "question": "Which IBAN?", "execution_id": caller.execution(), **more}
    answer = caller.post("/v1/requests", {"request_id": request_id, **body})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def answered(anna: Caller, request: dict[str, Any], value: Any) -> None:
    hold = anna.get(f"/v1/holds/{request['hold_id']}").json()
    decision = {"decision": "respond", "digest": hold["digest"], "value": value}
    answer = anna.post(f"/v1/holds/{request['hold_id']}/decision", decision)
    assert answer.status_code == 200, answer.text


def of(request: dict[str, Any], more: str = "") -> str:
    return f"/v1/requests/{request['request_id']}{more}?execution_id={request['execution_id']}"


def test_two_runs_of_an_agent_with_one_request_id_get_their_own_answers(bot: Caller, anna: Caller) -> None:
    request_id = fresh()
    alone = asked(bot, request_id)
    assert bot.get(f"/v1/requests/{request_id}").json()["hold_id"] == alone["hold_id"]
    runs = [alone, asked(bot, request_id)]
    for number, run in enumerate(runs):
        answered(anna, run, f"DE-{number}")

    for number, run in enumerate(runs):
        assert bot.get(f"{of(run)}&wait=20").json()["response"] == f"DE-{number}"
    for caller in (bot, anna):
        refused = caller.get(f"/v1/requests/{request_id}")
        assert (refused.status_code, refused.json()["code"]) == (409, "id_reused")
        assert "execution_id" in refused.json()["detail"]
    assert bot.get(f"/v1/requests/{request_id}?execution_id=nowhere").status_code == 404


def test_secrets_of_two_runs_with_one_request_id_are_never_guessed(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    request_id = fresh()
    runs = [asked(bot, request_id, kind="env_var", fields=["KEY"]) for _ in range(2)]
    for number, run in enumerate(runs):
        answered(anna, run, {"KEY": f"secret-{number}"})

    refused = bot.post(f"/v1/requests/{request_id}/secrets", {"attempt_id": "mine"})
    assert (refused.status_code, refused.json()["code"]) == (409, "id_reused")
    for number, run in enumerate(runs):
        taken = bot.post(of(run, "/secrets"), {"attempt_id": "mine"})
        assert [secret["value"] for secret in taken.json()["secrets"]] == [f"secret-{number}"], taken.text

    olga = doors.caller("olga", "operator")
    assert olga.post(f"/v1/requests/{request_id}/secrets/erase", {}).status_code == 409
    assert olga.post(of(runs[0], "/secrets/erase"), {}).json()["erased"] == 1
    assert bot.post(of(runs[0], "/secrets"), {"attempt_id": "mine"}).json()["code"] == "expired"
    assert bot.post(of(runs[1], "/secrets"), {"attempt_id": "mine"}).status_code == 200


@pytest.mark.parametrize("is_first", [True, False])
def test_another_agent_under_the_same_id_is_in_nobodys_way_and_is_not_named(
    doors: Doors, bot: Caller, anna: Caller, is_first: bool
) -> None:
    other = doors.caller("nosy", "agent", agent="nosy-neighbour")
    request_id, kind = fresh(), {"kind": "env_var", "fields": ["KEY"]}
    if is_first:
        asked(other, request_id)
    own = asked(bot, request_id, **kind)
    if not is_first:
        asked(other, request_id)
    answered(anna, own, {"KEY": "mine"})

    assert bot.get(f"/v1/requests/{request_id}").json()["hold_id"] == own["hold_id"]
    taken = bot.post(f"/v1/requests/{request_id}/secrets", {"attempt_id": "a"})
    assert [secret["value"] for secret in taken.json()["secrets"]] == ["mine"]
    for refused in (
        other.get(of(own)),
        other.post(of(own, "/secrets"), {"attempt_id": "a"}),
        other.post(of(own, "/secrets/erase"), {}),
    ):
        assert refused.status_code == 403
        assert "billing" not in refused.text
    assert other.get(f"/v1/requests/{request_id}").json()["execution_id"] != own["execution_id"]


def test_two_agents_that_name_no_execution_may_choose_one_request_id(doors: Doors, bot: Caller) -> None:
    other = doors.caller("nosy", "agent", agent="nosy-neighbour")
    body = {"request_id": fresh(), "kind": "clarification", "question": "Which IBAN?"}
    found = [caller.post("/v1/requests", body) for caller in (other, bot)]
    assert [answer.status_code for answer in found] == [201, 201]
    assert bot.post("/v1/requests", body).json()["hold_id"] == found[1].json()["hold_id"]
    for caller, answer in zip((other, bot), found, strict=True):
        shown = caller.get(f"/v1/requests/{body['request_id']}").json()
        assert shown["hold_id"] == answer.json()["hold_id"]


def test_client_waits_for_the_answer_of_its_own_run(bot: Caller, anna: Caller) -> None:
    request_id = fresh()
    with Placet(bot.url, token=bot.token, agent="billing") as placet:
        runs = [
            placet.requests.ask("Which IBAN?", execution_id=bot.execution(), request_id=request_id)
            for _ in range(2)
        ]
        for number, run in enumerate(runs):
            answered(anna, dict(run.raw), f"DE-{number}")
        found = [placet.requests.wait(run, timeout_s=20).response for run in runs]
        named = placet.requests.wait(request_id, execution_id=runs[0].execution_id, timeout_s=20)
        with pytest.raises(Refused, match="execution_id"):
            placet.requests.wait(request_id, timeout_s=20)
    assert (found, named.response) == (["DE-0", "DE-1"], "DE-0")


def test_longest_question_is_kept_whole_and_its_run_described_in_short(bot: Caller, anna: Caller) -> None:
    question = "🙂" * TEXT_MAX_CHARS
    found = bot.post("/v1/requests", {"question": question}).json()
    assert found["question"] == question
    hold = anna.get(f"/v1/holds/{found['hold_id']}").json()
    run = bot.get(f"/v1/executions/{found['execution_id']}").json()
    assert (hold["question"], hold["request"]) == (question, run["request"])
    assert run["request"] == "🙂" * ((REQUEST_MAX_BYTES - 3) // 4) + "…"


@pytest.mark.parametrize(
    "content",
    [{"kind": "permission", "options": ["yes"]}, {"options": ["a", "a"]}, {"options": ["\u2060"]}],
    ids=["an answer of its own", "two alike", "blank"],
)
def test_request_with_options_that_no_answer_could_name_is_refused_by_their_field(
    bot: Caller, content: dict[str, Any]
) -> None:
    answer = bot.post("/v1/requests", {"question": "May I?", **content})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["detail"].startswith("options: ")
