"""A place in the log, `PARTITION@OFFSET`, names what its event is about: a call, its hold, or an execution."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from tests.sdk.scripted import Asked
from tests.sdk.terminal import EXECUTION, HOLD, Terminal

PLACE = "2@16"
CALL_PATH = f"/v1/executions/{HOLD['execution_id']}/tool-calls/{HOLD['call_id']}"
CALL = {
    "execution_id": HOLD["execution_id"],
    "call_id": HOLD["call_id"],
    "status": "held",
    "tool": "send_money",
    "hold_id": HOLD["hold_id"],
}
OF_CALL = {"call_id": HOLD["call_id"]}
OF_ITS_HOLD = {"hold_id": HOLD["hold_id"]}
QUESTION = {**HOLD, "hold_id": "q-hold", "call_id": None, "request_id": "q1", "tool": None}
OF_QUESTION = {"request_id": "q1", "hold_id": "q-hold"}
OF_RUN = {"reason": "why"}


def at_the_place(terminal: Terminal, data: dict[str, Any], event_type: str = "DecisionRecorded") -> None:
    """Let the gateway have this event at the place, and the call, hold and question that it may be about."""
    event = {
        "event_id": "e1",
        "type": event_type,
        "at": "2026-11-20T10:00:00Z",
        "partition": 2,
        "offset": 16,
        "execution_id": "rule/r1" if "execution_id" in data else HOLD["execution_id"],
        "data": data,
    }
    found = {
        "/v1/events/2/16": event,
        CALL_PATH: CALL,
        f"{CALL_PATH}/report-impact": {**CALL, "impact_reports": 1},
        f"{CALL_PATH}/revoke": {**CALL, "status": "revoked"},
        "/v1/holds/q-hold": QUESTION,
        "/v1/holds/q-hold/view": {"hold_id": "q-hold", "version": 1, "text": "", "view_digest": ""},
        "/v1/requests/q1": QUESTION,
    }
    others = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        one = found.get(asked.path)
        return await others(asked) if one is None else JSONResponse(one)

    terminal.script.on_http = answer


def shown(terminal: Terminal, place: str = PLACE) -> dict[str, Any]:
    assert terminal("show", place, "--json") == 0, terminal.err
    found: dict[str, Any] = json.loads(terminal.out)
    return found


@pytest.mark.parametrize(
    "data",
    [
        OF_CALL,
        OF_ITS_HOLD,
        {**OF_CALL, **OF_ITS_HOLD},
        {"subject_id": HOLD["call_id"]},
        {**OF_CALL, "execution_id": HOLD["execution_id"], "rule_id": "r1"},
    ],
)
def test_show_of_a_place_shows_the_call_of_its_event(terminal: Terminal, data: dict[str, Any]) -> None:
    at_the_place(terminal, data)

    assert shown(terminal) == CALL


@pytest.mark.parametrize("data", [OF_QUESTION, {"request_id": "q1"}, {"subject_id": "q-hold"}])
def test_show_of_a_place_shows_the_hold_of_a_question(terminal: Terminal, data: dict[str, Any]) -> None:
    at_the_place(terminal, data)

    assert shown(terminal) == QUESTION


@pytest.mark.parametrize("data", [OF_RUN, {"subject_id": "another"}, {"subject_id": "of two words"}])
def test_show_of_a_place_shows_the_execution_of_any_other_event(
    terminal: Terminal, data: dict[str, Any]
) -> None:
    at_the_place(terminal, data, "ExecutionPaused")

    assert shown(terminal)["execution_id"] == EXECUTION["execution_id"]


def test_show_of_a_place_says_what_the_event_is(terminal: Terminal) -> None:
    for data, said in (
        (OF_CALL, f"{HOLD['execution_id']}/{HOLD['call_id']}"),
        (OF_RUN, "state      running"),
    ):
        at_the_place(terminal, data)
        assert terminal("show", PLACE) == 0, terminal.err
        assert "2@16 in the log: DecisionRecorded, 2026-11-20" in terminal.out
        assert said in terminal.out


@pytest.mark.parametrize("data", [OF_CALL, OF_ITS_HOLD, {"subject_id": HOLD["call_id"]}])
def test_hold_is_decided_by_the_place_of_an_event_about_it_or_its_call(
    terminal: Terminal, data: dict[str, Any]
) -> None:
    at_the_place(terminal, data)

    assert terminal("approve", PLACE, "--yes") == 0, terminal.err

    (sent,) = terminal.sent()
    assert sent.path == f"/v1/holds/{HOLD['hold_id']}/decision"


def test_place_of_an_event_about_no_hold_says_how_to_see_what_it_is_about(terminal: Terminal) -> None:
    at_the_place(terminal, OF_RUN, "ExecutionPaused")

    assert terminal("approve", PLACE, "--yes") == 1
    said = f"the event at 2@16, ExecutionPaused of {HOLD['execution_id']}, is about no hold: placet show 2@16"
    assert said in " ".join(terminal.err.split())
    assert not terminal.sent()


@pytest.mark.parametrize("data", [OF_CALL, OF_ITS_HOLD])
@pytest.mark.parametrize("command", [("report-impact", "--reason", "harm"), ("revoke",)])
def test_command_on_a_call_takes_a_place(
    command: tuple[str, ...], data: dict[str, Any], terminal: Terminal
) -> None:
    at_the_place(terminal, data)
    name, *more = command

    assert terminal(name, PLACE, *more) == 0, terminal.err

    (sent,) = terminal.sent()
    assert sent.path == f"{CALL_PATH}/{name}"


def test_command_on_a_call_refuses_the_place_of_another_event(terminal: Terminal) -> None:
    at_the_place(terminal, OF_QUESTION)

    assert terminal("revoke", PLACE) == 1
    assert "is about no call: placet show 2@16" in " ".join(terminal.err.split())
    assert not terminal.sent()


def test_place_and_a_call_beside_it_are_wrong_usage(terminal: Terminal) -> None:
    assert terminal("revoke", PLACE, "c1") == 2
    assert "2@16 already names a call" in terminal.err


def test_execution_is_named_by_a_place(terminal: Terminal) -> None:
    at_the_place(terminal, OF_CALL)

    assert terminal("state", PLACE, "--at", "@16", "--json") == 0, terminal.err

    found = json.loads(terminal.out)
    assert (found["execution_id"], found["at"]) == (HOLD["execution_id"], "@16")


@pytest.mark.parametrize(
    "place", ["2@", "@16", "x@1", "1@x", "-1@1", "1@-1", "1@2@3", "1@" + "9" * 17, "١@1"]
)
@pytest.mark.parametrize("command", [("show",), ("approve", "--yes"), ("state",), ("revoke",)])
def test_what_is_no_place_is_wrong_usage_that_says_how_places_are_named(
    command: tuple[str, ...], place: str, terminal: Terminal
) -> None:
    name, *more = command

    assert terminal(name, *more, "--", place) == 2

    said = " ".join(terminal.err.replace("│", " ").split())
    assert "a place in the log is PARTITION@OFFSET, two whole numbers, such as 2@16" in said
    assert terminal.script.asked == []


def test_place_without_an_event_of_the_project_is_not_found(terminal: Terminal) -> None:
    assert terminal("show", "7@1") == 1
    assert "not_found" in terminal.err
