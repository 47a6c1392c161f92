"""`placet answer`: what was typed as the value that is meant, and questions that are closed."""

import io
import re
from typing import Any

import pytest
import typer
from starlette.responses import JSONResponse, Response

from placet.cli.answering import answer_value
from placet.models import Hold
from tests.sdk.scripted import Asked, Scripted
from tests.sdk.terminal import HOLD, TEXT, VIEW, Terminal, gateway
from tests.sdk.threaded import serving_thread


def test_answer_that_gives_a_permission_where_nobody_can_be_asked_is_wrong_usage(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", "true") == 2
    assert "--yes" in terminal.err
    assert terminal.sent() == []
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", "true", "--yes") == 0
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", "false") == 0


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("No", False), ("TRUE", True), ("false", False)])
def test_answer_to_a_permission_without_options_is_yes_or_no(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, text: str, value: Any
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", text, "--yes") == 0
    assert terminal.sent()[0].json()["value"] == value
    assert type(terminal.sent()[0].json()["value"]) is type(value)


@pytest.mark.parametrize(
    ("options", "text", "offered"),
    [([], "perhaps", "yes, no"), ([], "1", "yes, no"), (["once", {"id": 7}], "perhaps", "yes, no, once, 7")],
)
def test_answer_that_is_none_of_a_permissions_is_told_before_anybody_is_asked(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, options: list[Any], text: str, offered: str
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    monkeypatch.setitem(HOLD, "options", options)
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", text) == 2
    said = " ".join(terminal.err.replace("│", " ").split())
    assert f"is not one of the answers: {offered}" in said
    assert "--yes" not in terminal.err
    assert terminal.sent() == []


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("no", False), ("once", "once")])
def test_answer_to_a_permission_with_options_can_be_yes_or_no(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, text: str, value: Any
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    monkeypatch.setitem(HOLD, "options", ["once", "always"])
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", text, "--yes") == 0
    assert terminal.sent()[0].json()["value"] == value


@pytest.mark.parametrize(("text", "value"), [("no", False), ("No", False), ("yes", True), ("go", "go")])
def test_answer_in_words_is_no_option_that_an_agent_labelled_with_them(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, text: str, value: Any
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    monkeypatch.setitem(HOLD, "options", [{"id": "go", "label": "no"}, {"id": "stop", "label": "yes"}])
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", text, "--yes") == 0
    assert terminal.sent()[0].json()["value"] == value


def test_answer_to_a_permission_with_options_is_one_of_them(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    monkeypatch.setitem(HOLD, "options", ["yes", "later"])
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", "yes", "--yes") == 0
    assert terminal.sent()[0].json()["value"] == "yes"


def test_answer_without_a_value_names_the_options(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "options", ["visa", {"id": "sepa", "label": "SEPA"}])
    assert terminal("answer", "c0ffee") == 2
    assert "give an answer: visa, sepa" in terminal.err


@pytest.mark.parametrize("kind", ["clarification", "env_var"])
def test_closed_question_is_found_by_its_id_and_shown_with_its_answer(
    capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """It is in no list of open holds, and its id is not the beginning of its hold's."""
    response: Any = {"KEY": {"handle": "sec_1", "commitment": "c"}} if kind == "env_var" else "the second"
    closed = {
        **HOLD,
        "call_id": None,
        "kind": kind,
        "status": "resolved",
        "fields": ["KEY"],
        "response": response,
        "decision": {"decision": "respond", "by": "mia", "at": "2026-11-20T10:00:00Z", "feedback": None},
    }

    async def answers(asked: Asked) -> Response:
        if asked.path == "/v1/requests/request-1":
            return JSONResponse({"request_id": "request-1", "hold_id": HOLD["hold_id"], "status": "resolved"})
        if asked.path == "/v1/holds":
            return JSONResponse({"items": [], "next_cursor": None})
        if asked.path == f"/v1/holds/{HOLD['hold_id']}":
            return JSONResponse(closed)
        if asked.path.endswith("/decision"):
            return JSONResponse({"code": "already_decided", "detail": "mia decided it already"}, 409)
        return await gateway(asked)

    with serving_thread(Scripted(on_http=answers)) as script:
        terminal = Terminal(script, capsys)
        assert terminal("show", "request-1") == 0
        shown = re.search(r"^answer: (.*)$", terminal.out, re.MULTILINE)
        assert shown is not None
        assert shown[1].strip() == ("KEY" if kind == "env_var" else '"the second"')
        assert "decided" in terminal.out
        typed = ("answer", "request-1") if kind == "env_var" else ("answer", "request-1", "this")
        assert terminal(*typed) == 1
        assert "already_decided" in terminal.err
        assert terminal("show", "request-2") == 1
        assert "no hold begins with request-2" in terminal.err


SEVERAL = {"asks": {"multiple": True}}


@pytest.mark.parametrize(
    ("hold", "text", "value"),
    [
        (Hold("h", options=("yes", "no")), "yes", "yes"),
        (Hold("h", options=({"label": "Later", "id": 3},)), "Later", 3),
        (Hold("h", options=({"label": "Later", "id": "l"},)), "l", "l"),
        (Hold("h", options=({"label": "2", "id": 1}, {"label": "1", "id": 2})), "1", 1),
        (
            Hold("h", options=({"label": "keep", "id": "delete"}, {"label": "Keep", "id": "keep"})),
            "keep",
            "keep",
        ),
        (Hold("h", options=({"label": "keep", "id": "delete"}, "keep")), "keep", "keep"),
        (Hold("h", options=({"label": "same", "id": "a"}, {"label": "same", "id": "a"})), "same", "a"),
        (Hold("h", options=("1", 1)), "1", "1"),
        (Hold("h", options=("a", "b"), raw=SEVERAL), "a", ["a"]),
        (Hold("h", options=("a", {"id": 2, "label": "two"}), raw=SEVERAL), '["a", "two"]', ["a", 2]),
        (Hold("h", options=("a", "b"), raw=SEVERAL), "2.10", ["2.10"]),
        (Hold("h", call_id="c"), "42", 42),
        (Hold("h", kind="clarification"), "42", "42"),
        (Hold("h", kind="clarification"), "2.10", "2.10"),
        (Hold("h", kind="clarification"), "true", "true"),
        (Hold("h", kind="clarification"), "null", "null"),
        (Hold("h", kind="clarification"), '"2.10"', "2.10"),
        (Hold("h", kind="decision", options=("a",)), "1e3", "1e3"),
        (Hold("h", kind="permission"), "Yes", True),
        (
            Hold("h", kind="permission"),
            '{"granted": true, "remember": true}',
            {"granted": True, "remember": True},
        ),
        (Hold("h"), "plain words", "plain words"),
        (Hold("h", input_schema={"type": "string"}), "42", "42"),
        (Hold("h"), '{"a": [1]}', {"a": [1]}),
    ],
)
def test_answer_value_is_what_was_meant(hold: Hold, text: str, value: Any) -> None:
    assert answer_value(hold, text) == value
    assert type(answer_value(hold, text)) is type(value)


@pytest.mark.parametrize("cause", ["policy", "policy_error", "escalation"])
def test_answer_to_a_call_that_waits_for_approval_is_wrong_usage(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    monkeypatch.setitem(HOLD, "cause", cause)
    assert terminal("answer", "c0ffee", "travel") == 2
    assert "this is a call; use: placet approve, edit or reject" in terminal.err
    assert terminal.sent() == []


def test_answer_to_a_call_with_an_unknown_outcome_is_its_output(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "cause", "outcome_unknown")
    assert terminal("answer", "c0ffee", "paid") == 0
    assert terminal.sent()[0].json()["value"] == "paid"


def test_answer_sends_the_value(terminal: Terminal) -> None:
    assert terminal("answer", "c0ffee", "42") == 0
    assert terminal.sent()[0].json()["value"] == 42


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\ufeff\u3164"])
def test_answer_that_says_nothing_is_wrong_usage(terminal: Terminal, text: str) -> None:
    assert terminal("answer", "c0ffee", text) == 2
    assert "must not be blank" in terminal.err
    assert terminal.sent() == []


def test_answer_that_gives_a_permission_is_sent_on_the_view_that_was_printed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", "yes", "--yes") == 0
    (sent,) = terminal.sent()
    assert (sent.json()["digest"], sent.json()["view_digest"]) == (HOLD["digest"], VIEW["view_digest"])
    assert set(TEXT.splitlines()) <= set(terminal.out.splitlines())


def test_answer_that_gives_a_permission_which_is_closed_is_not_asked_to_be_confirmed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    monkeypatch.setitem(HOLD, "status", "expired")
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", "yes", "--yes") == 1
    assert "expired: the deadline has passed" in terminal.err
    assert terminal.sent() == []


def test_edit_of_a_question_names_the_command_that_answers_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    assert terminal("edit", "5b0a1f6e-2f0e-5c3b", "--arguments", "{}", "--yes") == 2
    assert "this is a question; use: placet answer 5b0a1f6e-2f0e-5c3b" in terminal.err
    assert terminal.sent() == []


def test_approval_of_variables_has_nobody_type_them_on_a_command_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    for kind, is_typed_there in (("env_var", False), ("clarification", True)):
        monkeypatch.setitem(HOLD, "kind", kind)
        assert terminal("approve", "5b0a1f6e-2f0e-5c3b", "--yes") == 2
        assert "placet answer 5b0a1f6e-2f0e-5c3b" in terminal.err
        assert ("5b0a1f6e-2f0e-5c3b VALUE" in terminal.err) is is_typed_there


def test_inbox_shows_what_a_permission_is_for_and_a_question_once(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = {"tool": "shell", "action": "rm -rf build", "risk": "medium"}
    changes = {
        "call_id": None,
        "tool": None,
        "risk": None,
        "asks": asks,
        "question": "May I?",
        "request": "May I?",
    }
    for name, value in changes.items():
        monkeypatch.setitem(HOLD, name, value)
    assert terminal("inbox") == 0
    assert re.search(r"permission: shell +medium", terminal.out)
    assert "tool: shell; action: rm -rf build; risk: medium, by the agent's own word" in terminal.out
    assert "asked: May I?" not in terminal.out


@pytest.mark.parametrize("text", ["Keep", '["Keep"]'])
def test_label_that_several_options_have_names_none_of_them(text: str) -> None:
    options = ({"label": "Keep", "id": "keep"}, {"label": "Keep", "id": "delete"})
    raw: dict[str, Any] = SEVERAL if text.startswith("[") else {}
    with pytest.raises(
        typer.BadParameter, match=r"several options are called Keep: give the id \(keep, delete\)"
    ):
        answer_value(Hold("h", options=options, raw=raw), text)


def test_answer_can_come_from_the_standard_input(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOLD, "call_id", None)
    monkeypatch.setitem(HOLD, "kind", "clarification")
    monkeypatch.setattr("sys.stdin", io.StringIO("two lines\nof text\n"))
    assert terminal("answer", "5b0a1f6e-2f0e-5c3b", "-") == 0
    assert terminal.sent()[0].json()["value"] == "two lines\nof text"
