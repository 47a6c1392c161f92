"""What the commands say of a call's values, and which holds they approve as a group."""

from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli.past_values import in_full, in_short, is_familiar
from schemas.call_history import CallHistory
from schemas.display import judged
from tests.sdk.scripted import Asked
from tests.sdk.terminal import GROUP, HOLD, Terminal

TAINTED = {"parts": ["novel", "tainted"], "novel": ["path", "to"], "tainted": ["to"], "is_whole": True}
MARK = "new: path, to; out of an untrusted output: to"


@pytest.mark.parametrize(
    ("history", "told"),
    [
        (None, ""),
        ({"novel": [], "tainted": [], "sources": [], "is_whole": True}, ""),
        ({"novel": ["cc", "to"]}, "new to this agent and tool: cc, to"),
        (
            {"novel": ["to"], "tainted": ["to"], "sources": ["c1", "c2"], "is_whole": True},
            "new to this agent and tool: to; out of an untrusted output of this run: to (of fetch_page c1, c2)",
        ),
        (
            {"novel": ["to"], "opposed": ["to"], "apart": ["cc", "file"]},
            (
                "new to this agent and tool: to; people were against calls with: to; "
                "approved before, but not together in such a call: cc, file"
            ),
        ),
        ({"novel": ["minutes", "room"], "apart": ["minutes"]}, "new to this agent and tool: minutes, room"),
        ({"is_whole": False}, "too many, or not read alike by all programs"),
    ],
    ids=["before", "known", "new", "tainted", "opposed", "new_beside_new", "many"],
)
def test_values_are_told_with_where_they_come_from(history: Any, told: str) -> None:
    assert in_full(history, {"c1": "fetch_page"}) == told


@pytest.mark.parametrize(
    "history",
    [
        {},
        {"tainted": ("to",)},
        {"parts": ("novel",), "novel": ("to",)},
        {"parts": ("tainted",), "tainted": ("url",)},
        {"tainted": ("to",), "is_known": False},
        {"is_known": False},
        {"is_whole": False},
    ],
)
def test_client_and_server_agree_on_what_a_person_looks_at_by_itself(history: dict[str, Any]) -> None:
    assert is_familiar(history) is CallHistory(**history).is_familiar


def test_hold_with_new_and_tainted_values_is_marked_in_the_inbox(terminal: Terminal) -> None:
    answer_with(terminal, {"/v1/holds": {**HOLD, "verdict": {"effect": "hold", "history": TAINTED}}})
    assert terminal("inbox") == 0
    assert MARK in terminal.out


def test_group_with_tainted_values_is_marked_and_not_approved_as_one(terminal: Terminal) -> None:
    answer_with(terminal, {"/v1/holds/groups": {**GROUP, "history": TAINTED}})
    assert terminal("inbox", "--grouped") == 0
    assert MARK in terminal.out
    assert terminal("approve", HOLD["hold_id"], "--group", "--yes") == 1
    assert f"not all known ({MARK}): approve each by itself" in terminal.err
    assert terminal.sent() == []


def test_group_of_tainted_values_that_people_approved_before_is_approved_and_told(terminal: Terminal) -> None:
    groups = {**GROUP, "history": {"tainted": ["to"]}}
    decided = {"hold_id": HOLD["hold_id"], "status": "resolved"}
    answer_with(terminal, {"/v1/holds/groups": groups, "/v1/holds/decisions": decided})
    assert terminal("approve", HOLD["hold_id"], "--group", "--yes") == 0
    assert "values: out of an untrusted output: to" in terminal.out


def test_source_of_a_tainted_value_is_shown_with_its_tool(terminal: Terminal) -> None:
    call = {
        "execution_id": "invoice-march",
        "call_id": "c2",
        "tool": "pay",
        "status": "held",
        "verdict": {"effect": "hold", "history": {**TAINTED, "sources": ["c1", "gone"]}},
    }
    source = {**call, "call_id": "c1", "tool": "fetch_page", "verdict": None}
    answer_with(
        terminal,
        {
            "/v1/executions/invoice-march/tool-calls": call,
            "/v1/executions/invoice-march/tool-calls/c2": call,
            "/v1/executions/invoice-march/tool-calls/c1": source,
        },
    )
    assert terminal("show", "invoice-march/c2") == 0
    assert "(of fetch_page c1, gone)" in " ".join(terminal.out.split())


def test_released_call_is_shown_with_its_risk_and_its_class(terminal: Terminal) -> None:
    verdict = {
        "effect": "allow",
        "risk": {"score": 0.25, "level": "low", "parts": ["writes"], "required": 0.8},
        "trust": {"trust_class": "body=text&risk=writes"},
    }
    call: dict[str, Any] = {
        "execution_id": "invoice-march",
        "call_id": "c2",
        "status": "released",
        "tool": "pay",
    }
    call["verdict"] = verdict
    answer_with(
        terminal,
        {
            "/v1/executions/invoice-march/tool-calls": call,
            "/v1/executions/invoice-march/tool-calls/c2": call,
        },
    )
    assert terminal("show", "invoice-march/c2") == 0
    said = " ".join(terminal.out.split())
    assert "risk low 0.2500 (writes)" in said
    assert "class of calls body=text&risk=writes" in said


def test_risk_is_told_with_and_without_new_values(terminal: Terminal) -> None:
    risk = {"score": 0.25, "level": "low", "parts": ["writes"], "required": 0.8}
    raised = {"score": 0.475, "level": "medium", "parts": ["novel", "writes"], "required": 0.8947}
    verdict = {"effect": "hold", "risk": risk, "risk_with_values": raised, "history": {"novel": ["to"]}}
    answer_with(terminal, {"/v1/holds": {**HOLD, "risk": risk, "verdict": verdict}})

    assert terminal("inbox") == 0

    assert "low 0.25, with new values medium 0.47" in terminal.out
    place = {"execution_id": "invoice-march", "call_id": "c2"}
    call = {**place, "status": "released", "tool": "pay", "verdict": verdict}
    path = "/v1/executions/invoice-march/tool-calls"
    answer_with(terminal, {path: call, f"{path}/c2": call})
    assert terminal("show", "invoice-march/c2") == 0
    said = " ".join(terminal.out.split())
    assert "risk low 0.2500 (writes), with new values medium 0.4750 (novel, writes)" in said


def test_in_short_of_nothing_is_empty() -> None:
    assert in_short(None) == "" == in_short({"novel": [], "is_known": False})


def test_server_says_the_same_in_short() -> None:
    history = CallHistory(parts=("novel", "tainted"), novel=("path", "to"), tainted=("to",))
    assert "; ".join(judged.in_short(history)) == MARK == in_short(TAINTED)


LISTS = (
    "/v1/holds",
    "/v1/holds/groups",
    "/v1/holds/decisions",
    "/v1/executions/invoice-march/tool-calls",
)


def answer_with(terminal: Terminal, answers: dict[str, dict[str, Any]]) -> None:
    everything = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        if asked.path not in answers:
            return await everything(asked)
        found = answers[asked.path]
        return JSONResponse({"items": [found], "next_cursor": None} if asked.path in LISTS else found)

    terminal.script.on_http = answer
