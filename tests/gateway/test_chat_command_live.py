"""`placet agent run` and `placet chat` as processes: a worker of a module's agents, and a conversation with one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next
from tests.gateway.test_openai_agent_live import endpoint
from tests.typing_person import Typing, typing

pytestmark = [pytest.mark.stack, pytest.mark.broker]

PLACET = [str(Path(sys.executable).with_name("placet"))]
MODULE = """
import placet

@placet.agent("{name}")
def answer(turn):
    if turn.message == "fail":
        raise ValueError("no such invoice")
    turn.say("One moment.")
    if turn.message == "ask":
        return "You said " + str(turn.hitl.request_clarification("Which one?"))
    if turn.message == "choose":
        where = turn.hitl.request_decision("Where?", [{{"id": "p", "label": "Prod"}}, "b"], multiple=True)
        keys = turn.hitl.request_env_var([{{"name": "KEY", "pattern": "[a-z]+"}}])
        return f"{{where}} {{len(keys['KEY'])}}"
    if turn.message == "permit":
        more = {{"tool": "shell", "action": "rm -rf build", "risk": "high", "remember": True}}
        return "granted" if turn.hitl.request_permission(**more) else "not granted"
    if turn.message == "hurry":
        return "You said " + str(turn.hitl.request_clarification("Which one?", default="any", timeout_seconds=6))
    if turn.message in ("number", "much"):
        return 5 if turn.message == "number" else "x" * 20_000
    return turn.message.upper() + " of " + turn.history()[0].text
"""


@pytest.fixture
def name() -> str:
    return f"terminal-{uuid4().hex[:8]}"


def environment(doors: Doors, name: str) -> dict[str, str]:
    token = doors.token(f"{name}-worker", "agent", agent=name)
    return {**os.environ, "PLACET_URL": doors.url, "PLACET_TOKEN": token, "COLUMNS": "200"}


def run(doors: Doors, name: str, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PLACET, *words],
        env=environment(doors, name),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@contextmanager
def worker(doors: Doors, name: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    (directory / "clerks.py").write_text(MODULE.format(name=name))
    with subprocess.Popen(
        [*PLACET, "agent", "run", "clerks"],
        env=environment(doors, name),
        cwd=directory,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert f"waits for messages to {name}" in process.stderr.readline()
            yield process
        finally:
            process.kill()


def at_terminal(*words: str, environment: dict[str, str]) -> AbstractContextManager[Typing]:
    return typing([*PLACET, *words], environment)


def test_agent_of_a_module_answers_at_the_terminal(doors: Doors, name: str, tmp_path: Path) -> None:
    with worker(doors, name, tmp_path) as process:
        said = run(doors, name, "chat", "hello", "--agent", name)
        assert (said.returncode, said.stdout) == (0, "One moment.\nHELLO of hello\n"), said.stderr
        told, conversation = said.stderr.split()
        assert told == "conversation"
        more = run(doors, name, "chat", "bye", "--conversation", conversation, "--json")
        events = [json.loads(line) for line in more.stdout.splitlines()]
        assert more.stderr == ""
        assert [event["event"] for event in events] == ["message", "message", "complete"]
        assert events[1]["data"]["text"] == "BYE of hello"
        failed = run(doors, name, "chat", "fail", "--conversation", conversation)
        assert (failed.returncode, failed.stdout) == (1, "")
        assert "ValueError: no such invoice" in failed.stderr
        for wrong, told in (
            ("number", "a reply is a text or None, and the agent gave a value of the type int"),
            ("much", "invalid: reply"),
        ):
            found = run(doors, name, "chat", wrong, "--conversation", conversation)
            assert (found.returncode, told in found.stderr) == (1, True), found.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 130


def test_worker_before_a_model_needs_no_key(doors: Doors, name: str) -> None:
    given = environment(doors, name)
    given.pop("OPENAI_API_KEY", None)
    with endpoint({"content": "Good day."}) as (url, _):
        command = [*PLACET, "agent", "openai", "--agent", name, "--model", "m", "--base-url", url]
        with subprocess.Popen(command, env=given, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                assert f"waits for messages to {name}" in process.stderr.readline()
                said = run(doors, name, "chat", "hello", "--agent", name)
                assert said.stdout == "Good day.\n", said.stderr
            finally:
                process.kill()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_worker_that_waits_for_a_person_stops_at_once(
    doors: Doors, anna: Caller, name: str, tmp_path: Path, how: signal.Signals
) -> None:
    asked = f"c-{name}"
    with worker(doors, name, tmp_path) as process:
        command = [*PLACET, "chat", "ask", "--agent", name, "--conversation", asked, "--json"]
        with subprocess.Popen(
            command, env=environment(doors, name), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        ) as chat:
            assert chat.stdout is not None
            events = (json.loads(line) for line in chat.stdout)
            question = next(event["data"] for event in events if event["event"] == "hitl_requested")
            process.send_signal(how)
            assert process.wait(timeout=10) == 130
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
            answer = {
                "request_id": question["request_id"],
                "conversation_id": asked,
                "response": "the second",
            }
            said = anna.post("/agent/hitl/respond", answer)
            assert said.status_code == 200, said.text
            # The turn was given back, so it does not wait for the end of the lease.
            with worker(doors, name, tmp_path):
                last = [event for event in events if event["event"] == "message"][-1]
            assert last["data"]["text"] == "You said the second"


def test_person_at_the_terminal_is_asked_until_an_answer_fits(
    doors: Doors, anna: Caller, name: str, tmp_path: Path
) -> None:
    access = {**environment(doors, name), "PLACET_TOKEN": anna.token}
    conversation = doors.caller(f"{name}-web", "agent", agent=name).execution()
    with (
        worker(doors, name, tmp_path),
        at_terminal("chat", "choose", "--conversation", conversation, environment=access) as talk,
    ):
        for shown, typed in (
            ("answer: ", "nonsense"),
            ("[not accepted: ", ""),
            ("answer: ", '["Prod", "b"]'),
            ("KEY: pattern: [a-z]+", ""),
            ("\nKEY: ", "UPPER"),
            ("[not accepted: invalid_arguments", ""),
            ("[KEY must contain what fits the pattern [a-z]+]", ""),
            ("\nKEY: ", "lower"),
        ):
            talk.expect(shown)
            if typed:
                talk.type(typed)
        assert "lower" not in talk.expect("['p', 'b'] 5")
        assert talk.process.wait(timeout=30) == 0


def test_token_that_may_not_answer_is_told_and_follows_the_answer_of_others(
    doors: Doors, anna: Caller, name: str, tmp_path: Path
) -> None:
    with (
        worker(doors, name, tmp_path),
        at_terminal("chat", "ask", "--agent", name, environment=environment(doors, name)) as talk,
    ):
        talk.expect("answer: ")
        talk.type("mine")
        talk.expect("it waits for somebody who may answer it: placet answer")
        answer_next(anna, name, "yours")
        assert "answer: " not in talk.expect("You said yours")
        assert talk.process.wait(timeout=30) == 0


def test_conversation_that_there_is_not_and_message_that_nobody_takes_on(doors: Doors, name: str) -> None:
    unknown = run(doors, name, "chat", "hello", "--conversation", f"typo-{name}")
    assert unknown.returncode == 1
    assert f"not_found: no conversation typo-{name}; to begin one: placet chat --agent NAME" in unknown.stderr
    with subprocess.Popen(
        [*PLACET, "chat", "hello", "--agent", name],
        env=environment(doors, name),
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        waiting.stderr.readline()
        assert f"no worker of {name} has taken the message on yet" in waiting.stderr.readline()
        waiting.kill()


def test_conversation_that_is_gone_on_with_asks_first_what_is_open(
    doors: Doors, anna: Caller, name: str, tmp_path: Path
) -> None:
    asked = f"c-{name}"
    body = {"message": "ask", "agent": name, "conversation_id": asked}
    own = doors.caller(f"{name}-worker", "agent", agent=name)
    with worker(doors, name, tmp_path):
        headers = {"Authorization": f"Bearer {own.token}"}
        with httpx.stream("POST", f"{doors.url}/agent/chat", json=body, headers=headers) as stream:
            next(line for line in stream.iter_lines() if line == "event: hitl_requested")
        access = {**environment(doors, name), "PLACET_TOKEN": anna.token}
        with at_terminal("chat", "--conversation", asked, environment=access) as talk:
            told = talk.expect("answer: ")
            assert told.index("One moment.") < told.index("[asks: Which one?]")
            talk.type("the second")
            talk.expect("You said the second")
            talk.expect("you: ")


def test_wrong_use_is_told(doors: Doors, name: str, tmp_path: Path) -> None:
    for words, told in (
        (("chat", "hello"), "name the agent, or a conversation"),
        (("chat", "--agent", name), "there is no terminal to ask at"),
        (("agent", "run", "no_such_module"), "no_such_module cannot be imported"),
        (("agent", "run", "json"), "no function there is decorated"),
        (
            ("agent", "openai", "--agent", name, "--model", "m", "--key-variable", "NO_KEY"),
            "NO_KEY is not set",
        ),
    ):
        found = run(doors, name, *words, cwd=tmp_path)
        assert found.returncode == 2, found.stderr
        assert told in " ".join(found.stderr.replace("│", " ").split())
    unknown = run(doors, name, "chat", "hello", "--agent", "somebody-else")
    assert unknown.returncode == 1
    assert "not_authorised" in unknown.stderr or "may only act for" in unknown.stderr
