"""A report of harm end to end: by REST and by the client, after the end of the run, in the views and the audit."""

from __future__ import annotations

from typing import Any

import pytest

from placet import AsyncPlacet
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]
HARM = {"reason": "it paid the invoice twice"}


def path_of(call: dict[str, Any]) -> str:
    return f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"


def ran(bot: Caller, anna: Caller) -> dict[str, Any]:
    """A call that a person approved and that succeeded, of a run that has ended."""
    held = bot.propose(bot.execution())
    word = {"decision": "approve", "digest": held["digest"]}
    assert anna.post(f"/v1/holds/{held['hold_id']}/decision", word).status_code == 200
    attempt = {"attempt_id": "a1"}
    used = bot.post(f"{path_of(held)}/consume", {"digest": held["digest"], **attempt})
    assert used.status_code == 200, used.text
    assert bot.post(f"{path_of(held)}/result", {"outcome": "succeeded", **attempt}).status_code == 200
    assert bot.post(f"/v1/executions/{held['execution_id']}/complete", {}).status_code == 200
    call: dict[str, Any] = bot.get(path_of(held)).json()
    assert (call["status"], call["impact_reports"]) == ("succeeded", 0)
    return call


def test_report_of_an_ended_run_is_counted_once_a_person(doors: Doors, bot: Caller, anna: Caller) -> None:
    call = ran(bot, anna)
    path = f"{path_of(call)}/report-impact"
    assert bot.post(path, HARM).status_code == 403
    assert anna.post(path, {}).status_code == 422

    first = anna.post(path, HARM)
    again = anna.post(path, {"reason": "and a third time"})
    other = doors.caller("olga", "operator").post(path, HARM)

    told = [(answer.status_code, answer.json()["impact_reports"]) for answer in (first, again, other)]
    assert told == [(200, 1), (200, 1), (200, 2)]
    assert other.json()["status"] == "succeeded"
    assert other.json()["ended_at"] == call["ended_at"]


def test_report_of_a_held_call_is_refused_with_what_to_do(bot: Caller, anna: Caller) -> None:
    refused = anna.post(f"{path_of(bot.propose(bot.execution()))}/report-impact", HARM)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_open")
    assert refused.json()["detail"].endswith("reject it if it must not run")


async def test_report_by_the_client_is_in_the_audit(doors: Doors, bot: Caller, anna: Caller) -> None:
    call = ran(bot, anna)
    async with AsyncPlacet(doors.url, token=anna.token) as placet:
        reported = await placet.report_impact(call["execution_id"], call["call_id"], reason=HARM["reason"])
    assert reported.impact_reports == 1
    analyst = doors.caller("ana", "analyst")
    rows = analyst.get(f"/v1/audit?subject=anna&limit=500&after={reported.cursor}").json()["items"]
    (row,) = [one for one in rows if one["action"] == "report_impact" and one["call_id"] == call["call_id"]]
    assert (row["feedback"], row["result"]["status"]) == (HARM["reason"], "succeeded")
