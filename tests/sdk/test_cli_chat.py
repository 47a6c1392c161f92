"""`placet chat` at a scripted gateway: questions until they are answered, conversations that there are not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from placet.cli import chat, inputs, prompting, session, unclaimed
from placet.cli.rows import width_of
from tests.sdk.chatting import PERMISSION, QUESTION, REFUSALS, VIEW_DIGEST, VIEW_TEXT, Desk
from tests.sdk.scripted import Scripted
from tests.sdk.terminal import Terminal, on_a_screen
from tests.sdk.threaded import serving_thread


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    made = Desk()
    monkeypatch.setattr(chat, "is_interactive", lambda: True)
    monkeypatch.setattr(inputs, "is_interactive", lambda: True)
    monkeypatch.setattr(prompting, "_line", made.line)
    return made


@pytest.fixture
def terminal(desk: Desk, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    with serving_thread(Scripted(on_http=desk.http)) as script:
        yield Terminal(script, capsys)


def answers(terminal: Terminal) -> list[Any]:
    return [asked.json()["value"] for asked in terminal.sent() if asked.path.endswith("/decision")]


def test_question_is_asked_again_until_an_answer_is_accepted(desk: Desk, terminal: Terminal) -> None:
    desk.codes, desk.typed = ["unknown_option"], ["nonsense", " ", "staging"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == ["nonsense", "staging"]
    assert "[not accepted: unknown_option: the value is none of the options]" in terminal.err
    assert "[not accepted: an answer must not be blank" in terminal.err
    assert "options: production (Production), staging" in terminal.err
    assert terminal.out == "done\n"


@pytest.mark.parametrize(
    ("question", "typed", "value"),
    [
        ({}, "Production", "production"),
        ({"asks": {"multiple": True}}, '["production", "staging"]', ["production", "staging"]),
        ({"asks": {"multiple": True}}, '["Production"]', ["production"]),
        ({"kind": "permission", "options": []}, "No", False),
        ({"options": [1, 2]}, "2", 2),
        ({"options": [], "kind": "clarification", "input_schema": {"type": "string"}}, "2", "2"),
    ],
)
def test_answer_is_read_as_placet_answer_reads_it(
    desk: Desk, terminal: Terminal, question: dict[str, Any], typed: str, value: Any
) -> None:
    desk.question, desk.typed = {**QUESTION, **question}, [typed]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == [value]
    assert type(answers(terminal)[0]) is type(value)


def test_option_that_a_label_stands_for_is_told(desk: Desk, terminal: Terminal) -> None:
    labelled = [{"id": "delete", "label": "Keep it"}, {"id": "keep", "label": "delete"}]
    desk.question, desk.typed = {**QUESTION, "options": labelled}, ["Keep it"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == ["delete"]
    assert "[Keep it is the option delete]" in terminal.err


def test_options_that_labels_in_a_list_stand_for_are_told(desk: Desk, terminal: Terminal) -> None:
    labelled = [{"id": "prod", "label": "staging"}, {"id": "test", "label": "test"}]
    desk.question = {**QUESTION, "options": labelled, "asks": {"multiple": True}}
    desk.typed = ['["staging", "test"]']
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == [["prod", "test"]]
    assert "[staging is the option prod]" in terminal.err
    assert "test is the option" not in terminal.err


def test_option_that_is_named_by_its_id_needs_no_word(desk: Desk, terminal: Terminal) -> None:
    labelled = [{"id": "delete", "label": "keep"}, {"id": "keep", "label": "delete"}]
    desk.question, desk.typed = {**QUESTION, "options": labelled}, ["keep"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert answers(terminal) == ["keep"]
    assert "is the option" not in terminal.err


def test_permission_is_given_on_its_view_after_a_confirmation(desk: Desk, terminal: Terminal) -> None:
    desk.question, desk.typed = PERMISSION, ["yep", "yes", "n", "yes", "y"]
    assert terminal("chat", "go", "--agent", "a") == 0
    (sent,) = [asked.json() for asked in terminal.sent() if asked.path == "/v1/holds/h1/decision"]
    assert (sent["decision"], sent["value"]) == ("respond", True)
    assert (sent["digest"], sent["view_digest"]) == ("d" * 64, VIEW_DIGEST)
    assert '[not accepted: "yep" is not one of the answers: yes, no' in terminal.err
    assert set(VIEW_TEXT.splitlines()) <= set(terminal.err.splitlines())
    assert 'options: yes, no, or {"granted": true, "remember": true} for further times, too' in terminal.err
    asked = [prompt for prompt, _ in desk.prompts]
    assert asked[1:4] == ["answer: ", asked[2], "answer: "]
    assert asked[2].startswith("Answer true to the permission with digest dddddddddddd?")
    assert "[not accepted: it was not confirmed]" in terminal.err


def test_permission_that_only_another_person_can_give_is_not_asked_for(
    desk: Desk, terminal: Terminal
) -> None:
    desk.question, desk.is_decidable = PERMISSION, False
    assert terminal("chat", "go", "--agent", "a") == 0
    assert "[another person decides this: placet answer h1]" in terminal.err
    assert desk.prompts == []


def test_permission_whose_view_is_not_that_of_the_hold_is_not_asked_for(
    desk: Desk, terminal: Terminal
) -> None:
    desk.question = {**PERMISSION, "digest": "e" * 64}
    assert terminal("chat", "go", "--agent", "a") == 0
    assert desk.prompts == []
    assert "[it cannot be answered here: digest_mismatch" in terminal.err


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        (
            {"kind": "clarification", "options": ["spring"], "default": "1.0"},
            ["suggestions: spring (any other text is an answer, too)", '; then the answer is "1.0"'],
        ),
        ({}, ["options: production (Production), staging (one of them)"]),
        ({"asks": {"allow_custom": True}}, ["staging (or a text of your own)"]),
        ({"asks": {"multiple": True}}, ['staging (several as a JSON list: ["production", "staging"])']),
        (
            {"options": [{"id": "s", "description": "no users", "recommended": True}], "fields": ["a"]},
            ["options (one of them):", "  s: description: no users; recommended: true", 'fields: ["a"]'],
        ),
    ],
)
def test_question_is_shown_with_all_that_it_says(
    desk: Desk, terminal: Terminal, question: dict[str, Any], shown: list[str]
) -> None:
    desk.question = {**QUESTION, "deadline_at": "2999-01-01T00:00:00Z", **question}
    desk.typed = ['["staging"]']
    assert terminal("chat", "go", "--agent", "a") == 0
    assert "waits until 2999-01-01" in terminal.err
    for text in shown:
        assert text in terminal.err


def test_end_of_the_input_leaves_the_question_open_and_follows_the_turn(
    desk: Desk, terminal: Terminal
) -> None:
    assert terminal("chat", "go", "--agent", "a") == 0
    assert "[the question stays open: placet answer h1; Ctrl-C leaves the chat]" in terminal.err
    assert answers(terminal) == []
    assert terminal.out == "done\n"


def test_variable_that_is_refused_is_asked_for_again_alone(desk: Desk, terminal: Terminal) -> None:
    fields = ["API_KEY", {"name": "REGION", "pattern": "^eu-"}]
    desk.question = {**QUESTION, "kind": "env_var", "options": [], "fields": fields}
    desk.codes, desk.typed = ["invalid_arguments"], ["s3cret", "us", "eu-1"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert [prompt for prompt, _ in desk.prompts] == ["API_KEY: ", "REGION: ", "REGION: "]
    assert terminal.err.count("REGION: pattern: ^eu-") == 2
    assert answers(terminal)[-1] == {"API_KEY": "s3cret", "REGION": "eu-1"}
    assert "[REGION must contain what fits the pattern ^eu-]" in terminal.err


@pytest.mark.parametrize("code", ["invalid", "quota"])
def test_talk_goes_on_after_a_message_that_was_refused(desk: Desk, terminal: Terminal, code: str) -> None:
    desk.messages, desk.typed = [code], ["  ", "go", "staging"]
    assert terminal("chat", "--agent", "a") == 0
    assert f"[{code}: it is refused]" in terminal.err
    assert [prompt for prompt, _ in desk.prompts] == ["you: ", "you: ", "answer: ", "you: "]
    assert terminal.out == "done\n"


def test_talk_goes_on_after_a_turn_that_failed_and_ends_with_the_input(
    desk: Desk, terminal: Terminal
) -> None:
    desk.times, desk.ends, desk.typed = 0, "failed", ["go", "go"]
    assert terminal("chat", "--agent", "a") == 0
    assert terminal.err.count("[no such plan]") == 2
    assert "Aborted" not in terminal.err
    desk.typed = []
    assert terminal("chat", "go", "--agent", "a") == 1


def test_talk_goes_on_after_an_outage(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = partial(session.connect, within_s=0.1, answer_s=0.1)
    monkeypatch.setattr(chat, "connect", impatient)
    desk.away, desk.times, desk.typed = True, 0, ["go", "go"]
    assert terminal("chat", "--agent", "a") == 0
    assert "answers 503 for now" in terminal.err
    assert terminal.out == "done\n"


def test_talk_ends_where_no_message_is_accepted_any_more(desk: Desk, terminal: Terminal) -> None:
    desk.messages, desk.typed = ["execution_closed"], ["go"]
    assert terminal("chat", "--agent", "a") == 1
    assert "execution_closed: it is refused" in terminal.err


def test_held_call_says_how_it_is_approved(desk: Desk, terminal: Terminal) -> None:
    desk.question = {"hold_id": "h2", "call_id": "c", "request_id": None, "tool": "move", "status": "open"}
    assert terminal("chat", "go", "--agent", "a") == 0
    assert "[move waits for a decision; in another terminal: placet approve h2]" in terminal.err
    assert desk.prompts == []


@pytest.mark.parametrize(
    ("closed", "told"),
    [
        (
            {"status": "resolved", "response": "staging", "decision": {"decision": "respond", "by": "mia"}},
            'mia answered: "staging"',
        ),
        (
            {"status": "resolved", "decision": {"decision": "reject", "by": "mia", "feedback": "not now"}},
            "mia rejected the question: not now",
        ),
        (
            {"status": "expired", "response": "production", "timed_out": True},
            'nobody decided the question in time; the answer is "production"',
        ),
        ({"status": "cancelled"}, "the question is cancelled"),
    ],
)
def test_question_that_was_closed_elsewhere_is_told(
    desk: Desk, terminal: Terminal, closed: dict[str, Any], told: str
) -> None:
    desk.closed = {**QUESTION, **closed}
    assert terminal("chat", "go", "--agent", "a") == 0
    assert f"[{told}]" in terminal.err


def test_variables_are_prompted_for_without_being_shown(desk: Desk, terminal: Terminal) -> None:
    fields = ["API_KEY", {"name": "REGION", "secret": False}]
    desk.question = {**QUESTION, "kind": "env_var", "options": [], "fields": fields}
    desk.typed = ["s3cret", "eu"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert desk.prompts == [("API_KEY: ", True), ("REGION: ", False)]
    assert answers(terminal) == [{"API_KEY": "s3cret", "REGION": "eu"}]


@pytest.mark.parametrize("code", ["not_authorised", "already_decided"])
def test_question_that_cannot_be_answered_here_is_told_once_and_the_stream_goes_on(
    desk: Desk, terminal: Terminal, code: str
) -> None:
    desk.codes, desk.typed, desk.times = [code], ["staging"], 2
    assert terminal("chat", "go", "--agent", "a") == 0
    assert len(desk.prompts) == 1
    assert f"[not accepted: {code}: {REFUSALS[code][1]}]" in terminal.err
    hint = "[it waits for somebody who may answer it: placet answer h1]"
    assert (hint in terminal.err) is (code == "not_authorised")
    assert terminal.out == "done\n"


def test_conversation_that_does_not_exist_is_not_begun(desk: Desk, terminal: Terminal) -> None:
    assert terminal("chat", "go", "--conversation", "typo") == 1
    assert "not_found: no conversation typo; to begin one: placet chat --agent NAME" in terminal.err
    assert terminal.sent() == []


@pytest.mark.parametrize("where", [("--conversation", "c1"), ("--conversation", "new", "--agent", "a")])
def test_conversation_that_exists_goes_on_and_one_is_begun_under_a_chosen_id(
    desk: Desk, terminal: Terminal, where: tuple[str, ...]
) -> None:
    desk.typed = ["staging"]
    assert terminal("chat", "go", *where) == 0
    (message,) = [asked.json() for asked in terminal.sent() if asked.path == "/agent/chat"]
    assert message["conversation_id"] == where[1]


@pytest.mark.parametrize("claims", [0, 1])
def test_message_that_no_worker_takes_on_is_told(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, claims: int
) -> None:
    monkeypatch.setattr(unclaimed, "UNCLAIMED_AFTER_S", 0.05)
    desk.claims, desk.typed = claims, ["staging"]
    assert terminal("chat", "go", "--agent", "nobodyhome") == 0
    told = terminal.err.count("[no worker of nobodyhome has taken the message on yet")
    assert told == (1 if claims == 0 else 0)


FORGED = "[mia approved send_money]"


def test_agents_words_never_begin_in_the_column_of_placets_own(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a terminal of 40 columns: by its own line breaks, or where the terminal would break a line."""
    on_a_screen(monkeypatch, 40)
    padded = ".".ljust(40, ".") + FORGED + " " + "," * 39 + FORGED
    desk.says = f"done\n{FORGED}\nyou: yes\n{padded}"
    desk.question = {**QUESTION, "question": padded, "options": [padded, FORGED]}
    desk.closed = {**QUESTION, "status": "resolved", "response": padded, "decision": {"by": "mia"}}
    assert terminal("chat", "go", "--agent", "a") == 0
    said, told = terminal.out.splitlines(), terminal.err.splitlines()
    assert FORGED in terminal.out
    assert [row for row in said if not row.startswith("  ")] == []
    assert [row for row in told if FORGED in row and not row.startswith("  ")] == []
    assert "[asks:" in told
    assert all(len(row) <= 40 for row in (*said, *told))


@pytest.mark.parametrize(
    "filler", ["\u093e" * 40, "\U0001f3fb" * 19 + "y", "漢" * 20], ids=["marks", "tones", "wide"]
)
def test_characters_that_terminals_measure_differently_break_no_row(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, filler: str
) -> None:
    """Some take 38 columns at one terminal, and none at another."""
    on_a_screen(monkeypatch, 40)
    desk.says = f"x{filler}{FORGED}"
    assert terminal("chat", "go", "--agent", "a") == 0
    rows = terminal.out.splitlines()
    assert all(row.startswith("  ") and sum(map(width_of, row)) <= 40 for row in rows)
    assert FORGED in "".join(row[2:] for row in rows)


def test_words_of_an_agent_are_in_no_prompt(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_screen(monkeypatch, 40)
    said = "," * 39 + FORGED
    desk.question = {
        **QUESTION,
        "kind": "env_var",
        "options": [],
        "fields": [{"name": "KEY", "description": said}],
    }
    desk.typed = ["v"]
    assert terminal("chat", "go", "--agent", "a") == 0
    assert [prompt for prompt, _ in desk.prompts] == ["KEY: "]
    assert f",{FORGED}" in terminal.err
    long = "a" * 50 + FORGED
    desk.question, desk.typed, desk.prompts = {**PERMISSION, "options": [long]}, [long, "y"], []
    assert terminal("chat", "go", "--agent", "a") == 0
    assert [prompt[:42] for prompt, _ in desk.prompts] == [
        "answer: ",
        "Answer as shown above to the permission wi",
    ]


def test_agents_words_are_unchanged_where_a_program_reads_them(desk: Desk, terminal: Terminal) -> None:
    desk.says = f"done\n{FORGED}\n" + "a" * 500
    assert terminal("chat", "go", "--agent", "a") == 0
    assert terminal.out == desk.says + "\n"


def test_question_that_cannot_be_asked_here_shows_what_it_offers(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "is_interactive", lambda: False)
    desk.question = {**QUESTION, "deadline_at": "2999-01-01T00:00:00Z", "default": "staging"}
    assert terminal("chat", "go", "--agent", "a") == 0
    assert "options: production (Production), staging (one of them)" in terminal.err
    assert "waits until 2999-01-01" in terminal.err
    assert '; then the answer is "staging"' in terminal.err
    assert "to answer it: placet answer h1" in terminal.err


def test_message_that_was_not_sent_because_an_earlier_one_waits_is_told(
    desk: Desk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("placet.cli.earlier_turns.Earlier.begun", interrupted)
    assert terminal("chat", "go", "--agent", "a", "--conversation", "c1") == 130
    assert "[the message was not sent: an earlier one waits]" in terminal.err
    assert [asked for asked in terminal.sent() if asked.path == "/agent/chat"] == []
