"""Names that no token can have: nothing is handed to them, and they are nobody's accounts."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]

NO_SUBJECTS = {
    "zero-width space": "anna\u200b",
    "line's end": "a\r\nb",
    "turned around": "\u202ebob",
    "blank before": " carl",
    "blank behind": "carl ",
    "blank": " ",
    "Placet's own": "placet:timer",
}


@pytest.mark.parametrize("name", NO_SUBJECTS.values(), ids=NO_SUBJECTS.keys())
def test_hold_delegated_to_what_no_token_can_be_of_refused(bot: Caller, anna: Caller, name: str) -> None:
    hold_id = bot.propose(bot.execution())["hold_id"]
    answer = anna.post(f"/v1/holds/{hold_id}/delegate", {"to": name})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert "no token can have such a subject" in answer.json()["detail"]
    assert anna.get(f"/v1/holds/{hold_id}").json()["assignee"] is None


@pytest.mark.parametrize("name", NO_SUBJECTS.values(), ids=NO_SUBJECTS.keys())
def test_principal_with_an_account_that_no_token_can_have_refused(doors: Doors, name: str) -> None:
    answer = doors.caller("root", "admin").call("PUT", "/v1/principals/odd", {"subjects": ["odd", name]})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "subjects[1]")
