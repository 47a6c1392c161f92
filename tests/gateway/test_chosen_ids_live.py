"""Ids that addresses have for other places, at a real gateway."""

from __future__ import annotations

from typing import Any

import pytest

from placet import NotFound, Placet
from placet.ids import segment
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def _code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("name", [".", ".."])
def test_case_37_ids_that_are_places_of_addresses_are_refused(doors: Doors, bot: Caller, name: str) -> None:
    operator, execution_id = doors.caller("olga", "operator"), bot.execution()
    answers = [
        bot.post("/v1/executions", {"execution_id": name}),
        bot.post(f"/v1/executions/{execution_id}/tool-calls", {"call_id": name, "tool": "read_file"}),
        bot.post("/v1/requests", {"request_id": name, "question": "Which?"}),
        operator.call("PUT", f"/v1/tools/{segment(name)}", {"name": name}),
    ]
    for answer in answers:
        assert _code(answer) == (422, "invalid"), answer.text
        assert "neither . nor .." in answer.json()["detail"]


@pytest.mark.parametrize("name", [".", ".."])
def test_execution_of_dots_alone_is_addressed_by_the_client(doors: Doors, name: str) -> None:
    operator = doors.caller("olga", "operator")
    # The decider answers: the address has reached it, and no such execution was ever started.
    with (
        Placet(doors.url, token=operator.token) as placet,
        pytest.raises(NotFound, match="no such execution"),
    ):
        placet.executions.pause(name)
