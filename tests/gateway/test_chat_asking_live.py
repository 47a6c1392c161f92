"""`placet chat` and `placet answer` at a terminal: permissions, other people, and what a message waits for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, decide, open_hold
from tests.gateway.test_chat_command_live import PLACET, at_terminal, environment, run, worker
from tests.sdk.terminal import plain
from tests.typing_person import END, INTERRUPT, typing

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture
def name() -> str:
    return f"asking-{uuid4().hex[:8]}"


def sent(doors: Doors, name: str, text: str) -> str:
    """A conversation in which the agent's own token has sent a message that waits for a person."""
    conversation = f"c-{uuid4().hex[:8]}"
    body = {"message": text, "agent": name, "conversation_id": conversation}
    headers = {"Authorization": f"Bearer {doors.token(f'{name}-web', 'agent', agent=name)}"}
    with httpx.stream("POST", f"{doors.url}/agent/chat", json=body, headers=headers) as stream:
        next(line for line in stream.iter_lines() if line == "event: hitl_requested")
    return conversation


def test_permission_is_granted_on_its_whole_view_and_not_by_what_was_typed_before(
    doors: Doors, anna: Caller, name: str, tmp_path: Path
) -> None:
    access = {**environment(doors, name), "PLACET_TOKEN": anna.token}
    with worker(doors, name, tmp_path):
        asked = sent(doors, name, "permit")
        hold = open_hold(anna, name)
        view = anna.get(f"/v1/holds/{hold['hold_id']}/view").json()
        with typing([*PLACET, "chat", "--conversation", asked], access, early="yes\ny\n") as talk:
            shown = plain(talk.expect("answer: "))
            assert set(view["text"].splitlines()) <= set(shown.splitlines())
            assert shown.rindex("action: rm -rf build") > shown.index("placet-view")
            talk.press("yes\ny\n")
            talk.expect("[y/N]: ")
            talk.type("")
            talk.expect("[not accepted: it was not confirmed]")
            talk.expect("answer: ")
            talk.type('{"granted": true, "remember": true}')
            talk.expect("[y/N]: ")
            talk.type("y")
            talk.expect("granted")
            talk.expect("you: ")
            talk.press(END)
            code, rest = talk.ended()
            assert (code, "Aborted" in rest) == (0, False)
        decided = anna.get(f"/v1/holds/{hold['hold_id']}/view?at=decision").json()
        assert [one["view_digest"] for one in decided["seen"]] == [view["view_digest"]]


def test_answer_asks_at_the_terminal_and_shows_a_permission_first(
    doors: Doors, anna: Caller, name: str, tmp_path: Path
) -> None:
    access = {**environment(doors, name), "PLACET_TOKEN": anna.token}
    with worker(doors, name, tmp_path):
        sent(doors, name, "permit")
        hold = open_hold(anna, name)
        with at_terminal("inbox", "--agent", name, environment=access) as listed:
            shown = plain(listed.ended()[1])
            for text in ("permission: shell", "high", "tool: shell; action: rm -rf build"):
                assert text in shown
        with typing([*PLACET, "answer", hold["hold_id"], "yes"], access, early="y\n") as asked:
            assert "action: rm -rf build" in asked.expect("[y/N]: ")
            asked.type("n")
            assert asked.ended()[0] == 1
        with at_terminal("answer", hold["hold_id"], environment=access) as asked:
            asked.expect("answer: ")
            asked.press(END)
            assert asked.ended() == (1, f"\r\n[the question stays open: placet answer {hold['hold_id']}]\r\n")
        with at_terminal("answer", hold["hold_id"], environment=access) as asked:
            assert "action: rm -rf build" in asked.expect("answer: ")
            asked.type("no")
            code, rest = asked.ended()
            assert (code, "answered: permission" in rest) == (0, True)
        with at_terminal("answer", hold["hold_id"], environment=access) as asked:
            code, rest = asked.ended()
            assert (code, "already_decided: already answered by anna" in rest) == (1, True)
        sent(doors, name, "ask")
        hold = open_hold(anna, name)
        with at_terminal("answer", hold["hold_id"], environment=access) as asked:
            assert "Which one?" in asked.expect("answer: ")
            decide(doors.caller("mia", "reviewer"), hold, decision="respond", value="theirs")
            code, rest = asked.ended()
            assert (code, '[mia answered: "theirs"]' in rest) == (1, True)
        edited = run(doors, name, "edit", hold["hold_id"], "--arguments", "{}", "--yes")
        assert edited.returncode == 2
        assert "this is a question; use: placet answer" in edited.stderr


def test_prompt_is_withdrawn_when_somebody_else_answers_or_time_is_over(
    doors: Doors, anna: Caller, name: str, tmp_path: Path
) -> None:
    access = {**environment(doors, name), "PLACET_TOKEN": anna.token}
    mia = doors.caller("mia", "reviewer")
    with (
        worker(doors, name, tmp_path),
        at_terminal(
            "chat", "--agent", name, environment={**access, "PLACET_TOKEN": doors.token("olga", "operator")}
        ) as talk,
    ):
        talk.expect("[Ctrl-D here leaves; Ctrl-C at any time]")
        talk.expect("you: ")
        talk.type("ask")
        talk.expect("answer: ")
        talk.press("half of an ans")
        decide(mia, open_hold(mia, name), decision="respond", value="theirs")
        talk.expect('[mia answered: "theirs"]')
        talk.expect("You said theirs")
        talk.expect("you: ")
        talk.type("hurry")
        assert '; then the answer is "any"' in talk.expect("answer: ")
        talk.expect('[nobody decided the question in time; the answer is "any"]')
        talk.expect("You said any")
        talk.expect("you: ")
        talk.type("fail")
        talk.expect("ValueError: no such invoice")
        talk.expect("you: ")
        talk.press(INTERRUPT)
        code, rest = talk.ended()
        assert (code, "Aborted" in rest) == (130, False)


def test_two_terminals_see_each_others_messages(
    doors: Doors, anna: Caller, name: str, tmp_path: Path
) -> None:
    access = {**environment(doors, name), "PLACET_TOKEN": anna.token}
    mia = {**access, "PLACET_TOKEN": doors.token("mia", "reviewer")}
    conversation = doors.caller(f"{name}-web", "agent", agent=name).execution()
    with (
        worker(doors, name, tmp_path),
        at_terminal("chat", "--conversation", conversation, environment=access) as one,
        at_terminal("chat", "--conversation", conversation, environment=mia) as other,
    ):
        other.expect("you: ")
        one.expect("you: ")
        one.type("hello")
        one.expect("HELLO of hello")
        other.type("ask")
        told = other.expect("answer: ")
        assert told.index("[anna: hello]") < told.index("HELLO of hello") < told.index("[asks: Which one?]")
        one.expect("you: ")
        # The other's question is open: it is asked here, too, before the answer to what is said here.
        one.type("bye")
        told = one.expect("answer: ")
        assert told.index("[mia: ask]") < told.index("[asks: Which one?]")
        one.type("mine")
        other.expect('[anna answered: "mine"]')
        one.expect("You said mine")
        one.expect("BYE of hello")


def test_message_that_waits_tells_for_what(doors: Doors, anna: Caller, name: str, tmp_path: Path) -> None:
    access = {**environment(doors, name), "PLACET_TOKEN": anna.token}
    command = [*PLACET, "chat", "hello", "--conversation"]

    def told(conversation: str) -> str:
        with subprocess.Popen(
            [*command, conversation], env=access, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as waiting:
            assert waiting.stderr is not None
            line = waiting.stderr.readline()
            waiting.kill()
        return line

    with worker(doors, name, tmp_path):
        asked = sent(doors, name, "ask")
        hold = open_hold(anna, name)
        assert told(asked) == (
            f"[the message waits for the answer to an earlier one of {name}-web, which waits for a person: "
            f"placet answer {hold['hold_id']}]\n"
        )
        answer_next(anna, name, "this")
        paused = doors.caller(f"{name}-web", "agent", agent=name).execution()
        operator = doors.caller("olga", "operator")
        assert operator.post(f"/v1/executions/{paused}/pause", {"reason": "wait"}).status_code == 200
        assert told(paused) == f"[the conversation is paused; to go on: placet resume {paused}]\n"
        assert operator.post(f"/v1/executions/{paused}/resume", {}).status_code == 200
