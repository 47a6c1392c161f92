"""A decision on a call that names no digest, over REST and the WebSocket of a running stack."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.conftest import Caller
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def check_is_told_what_to_send(status: int, problem: dict[str, Any]) -> None:
    assert (status, problem["code"]) == (422, "invalid")
    assert "send the hold's digest" in problem["detail"]


@pytest.mark.parametrize("more", [{}, {"digest": ""}])
async def test_decision_on_a_call_without_its_digest_is_told_what_to_send(
    bot: Caller, anna: Caller, more: dict[str, str]
) -> None:
    call = bot.propose(bot.execution())
    async with open_socket(anna.url, anna.token) as person:
        for word in ({"decision": "approve", **more}, {"decision": "reject", "feedback": "no", **more}):
            answer = anna.post(f"/v1/holds/{call['hold_id']}/decision", word)
            check_is_told_what_to_send(answer.status_code, answer.json())
            reply = await person.ask("decision", hold_id=call["hold_id"], **word)
            check_is_told_what_to_send(reply["status"], reply["body"])
    assert anna.get(f"/v1/holds/{call['hold_id']}").json()["status"] == "open"


def test_question_is_answered_without_a_digest(bot: Caller, anna: Caller) -> None:
    asked = bot.post("/v1/requests", {"execution_id": bot.execution(), "question": "Which account?"}).json()
    word = {"decision": "respond", "value": "GB29"}
    assert anna.post(f"/v1/holds/{asked['hold_id']}/decision", word).status_code == 200
