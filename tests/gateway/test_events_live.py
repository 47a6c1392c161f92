"""A place of the log leads to its event, for those who may see it, and to nothing for everybody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway import resources as r
from placet.cli.app import run
from tests.gateway.conftest import PARTITIONS, Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def place_of(event: dict[str, Any]) -> str:
    return f"/v1/events/{event['partition']}/{event['offset']}"


def events_of(caller: Caller, execution_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = caller.get(f"/v1/executions/{execution_id}/events").json()["items"]
    return found


def test_place_of_an_event_is_answered_with_it(bot: Caller, anna: Caller) -> None:
    call = bot.propose(bot.execution())
    for event in events_of(anna, call["execution_id"]):
        for caller in (anna, bot):
            found = caller.get(place_of(event)).json()
            r.Event.model_validate(found)
            assert {**found, "cursor": None} == {**event, "cursor": None}


def test_place_is_answered_after_the_cursor_of_the_write(bot: Caller, anna: Caller) -> None:
    call = bot.propose(bot.execution())
    decision = {"decision": "approve", "digest": call["digest"]}
    bot.get(f"/v1/executions/{call['execution_id']}/events")
    newest = events_of(anna, call["execution_id"])[-1]
    after = anna.post(f"/v1/holds/{call['hold_id']}/decision", decision).json()["cursor"]
    following = {**newest, "offset": newest["offset"] + 1}
    found = anna.get(f"{place_of(following)}?after={after}")
    assert (found.status_code, found.json().get("type")) == (200, "DecisionRecorded"), found.text


def test_command_shows_the_call_that_each_of_its_events_is_about(
    bot: Caller, anna: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    call = bot.propose(bot.execution())
    decision = {"decision": "approve", "digest": call["digest"]}
    assert anna.post(f"/v1/holds/{call['hold_id']}/claim").status_code == 200
    assert anna.post(f"/v1/holds/{call['hold_id']}/decision", decision).status_code == 200
    started, *others = events_of(anna, call["execution_id"])
    assert {"HoldClaimed", "PolicyVerdictIssued", "DecisionRecorded"} <= {event["type"] for event in others}

    for event in (started, *others):
        place = "{partition}@{offset}".format(**event)
        assert run(["--url", anna.url, "--token", anna.token, "show", place, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found.get("call_id") == (None if event is started else call["call_id"])
        assert found["execution_id"] == call["execution_id"]


def test_place_that_is_not_the_callers_is_as_one_that_does_not_exist(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    event = events_of(anna, bot.execution())[0]
    elsewhere = doors.caller("anna", "admin", project="elsewhere")
    mallory = doors.caller("mallory", "admin", tenant="other")
    other_bot = doors.caller("bot2", "agent", agent="another")
    nowhere = f"/v1/events/{event['partition']}/{10**12}"

    for caller in (elsewhere, mallory, other_bot):
        refused = caller.get(place_of(event))
        place = f"{event['partition']}@{event['offset']}"
        assert refused.status_code == 404
        assert refused.json()["detail"] == f"no such event of this project at {place}"
        missing = caller.get(nowhere)
        assert missing.json() == {
            **refused.json(),
            "detail": f"no such event of this project at {event['partition']}@{10**12}",
        }
    assert anna.get(nowhere).status_code == 404
    assert anna.get(f"/v1/events/{PARTITIONS}/0").status_code == 404
    refused = doors.caller("bank", "tool:bank").get(place_of(event))
    assert (refused.status_code, refused.json()["code"]) == (403, "not_authorised")


@pytest.mark.parametrize("place", ["x/1", "-1/1", "1.0/1", "2147483648/1", "%D9%A1/1"])
def test_partition_that_is_no_whole_number_is_refused_with_its_range(anna: Caller, place: str) -> None:
    refused = anna.get(f"/v1/events/{place}")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert refused.json()["detail"] == "partition must be a whole number from 0 to 2147483647"


@pytest.mark.parametrize("place", ["1/x", "1/-1", "1/9007199254740992", f"1/{'9' * 5000}", "1/1e3"])
def test_offset_that_is_no_whole_number_is_refused_with_its_range(anna: Caller, place: str) -> None:
    refused = anna.get(f"/v1/events/{place}")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert refused.json()["detail"] == "offset must be a whole number from 0 to 9007199254740991"
