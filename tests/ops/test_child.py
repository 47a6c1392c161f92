"""A role that dies is started again, later each time, and its word is believed only from its own process."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.vault.wrapping import MASTER_VARIABLE
from ops import process
from ops.child import RoleChild
from ops.component import BACKING_OFF, READY, STARTING
from ops.config import DataDir
from ops.last_words import last_words
from ops.restarts import AT_ONCE, FIRST_DELAY_S, LONGEST_DELAY_S, describe_exit, restart_delay_s
from ops.status import observed

SAYS_READY = """
import json, os, pathlib, sys, time
path = pathlib.Path(sys.argv[1]); path.parent.mkdir(parents=True, exist_ok=True)
fresh = path.with_suffix(".new")
said = {"pid": os.getpid(), "state": "ready", "address": "127.0.0.1:1", "at": "2030-01-01T00:00:00.000Z"}
fresh.write_text(json.dumps(said))
fresh.replace(path); print("serving", flush=True); time.sleep(600)
"""


@pytest.fixture
def directory(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path)


@pytest.fixture
def serving(directory: DataDir) -> Iterator[RoleChild]:
    command = (sys.executable, "-c", SAYS_READY, str(directory.status("decider")))
    child = RoleChild("decider", command, directory)
    child.start()
    yield child
    child.stop()


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_child_started_is_ready_when_its_own_file_says_so(serving: RoleChild) -> None:
    _wait(lambda: serving.component.state == READY)
    assert serving.component.address == "127.0.0.1:1"
    assert serving.last_words() == "serving"


def test_last_words_are_of_this_run_and_not_of_an_earlier_one(directory: DataDir) -> None:
    log = directory.log("decider")
    log.parent.mkdir(parents=True)
    log.write_text("what an earlier run ended with\n")
    for program, said in (("pass", "nothing was printed"), ("print('of this run')", "of this run")):
        child = RoleChild("decider", (sys.executable, "-c", program), directory)
        child.start()
        _wait(lambda child=child: child.tick(time.monotonic()) is not None)  # type: ignore[misc]
        assert child.last_words() == said


JSON_AT_EASE = '{"timestamp":"2026-01-01T10:00:00.123+00:00","level":"info","logger":"x","event":"ready"}'
JSON_UNCLOSED = (
    JSON_AT_EASE.replace("info", "error").replace('"x"', '"asyncio"').replace("ready", "Unclosed Consumer")
)
CONSUMER = "    consumer: <aiokafka.consumer.consumer.AIOKafkaConsumer object at 0x7f>"
RAISED = ("Traceback (most recent call last):", '  File "x", line 1, in <module>', "ValueError: not one")
JSON_WARNING = JSON_AT_EASE.replace("info", "warning")


def test_last_words_are_the_last_that_tell_of_trouble(directory: DataDir) -> None:
    at, said = "2026-01-01 10:00:00,123", "Authenticated as decider via SCRAM-SHA-512"
    at_ease, warning = f"{at} INFO aiokafka.conn {said}", f"{at} WARNING log.kafka.client Kafka is away"
    child = RoleChild("decider", (sys.executable, "-c", "import time; time.sleep(600)"), directory)
    child.start()
    try:
        for lines, words in (
            ((at_ease,), "it printed no warning and no error"),
            ((warning, at_ease), warning),
            (("Traceback (most recent call last):", "KeyError: 'x'", at_ease), "KeyError: 'x'"),
            ((JSON_AT_EASE,), "it printed no warning and no error"),
            ((JSON_WARNING, JSON_AT_EASE), JSON_WARNING),
            ((warning, "    before or while processing the request."), warning),
            (
                ("The log is gone", f"{at} ERROR asyncio Unclosed AIOKafkaConsumer", CONSUMER),
                "The log is gone",
            ),
            (("The log is gone", JSON_UNCLOSED), "The log is gone"),
            (("The log is gone:", "    at a", f"{at} INFO x y"), "The log is gone:"),
            ((*RAISED, "LINE 1: SELECT", "  ^", "DETAIL: none"), "ValueError: not one"),
            ((*RAISED, "LINE 1: SELECT", warning, "    of 9"), warning),
            ((*RAISED, "LINE 1: SELECT", "Traceback (most recent call last):", "KeyError: 1"), "KeyError: 1"),
        ):
            directory.log("decider").write_text("".join(f"{line}\n" for line in lines))
            assert child.last_words() == words
    finally:
        child.stop()


# What it prints, at its end or when it is killed by a signal of its own making.
DUMPS = """
import faulthandler, sys
print("2026-01-01 10:00:00,123 CRITICAL services.processors.watchdog No progress on 3", file=sys.stderr, flush=True)
faulthandler.dump_traceback()
"""
GROUP = "raise ExceptionGroup('two', [KeyError('x'), ValueError('no room')])"
CRASHES = "import faulthandler, signal, os; faulthandler.enable(); os.kill(os.getpid(), signal.SIGSEGV)"


# A consumer that nobody closed, by the log of a role.
LEAVES = """
import asyncio, logging
from vitals.logs import log_to_stderr
log_to_stderr("INFO")
logging.getLogger("log").warning("the view could not be written: closed\\n\\tbefore or while it was asked.")
asyncio.new_event_loop().call_exception_handler({"message": "a task failed", "consumer": object()})
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (LEAVES, " ERROR asyncio a task failed"),
        (LEAVES.replace("a task failed", "Unclosed Consumer"), "log the view could not be written: closed"),
        (DUMPS, "2026-01-01 10:00:00,123 CRITICAL services.processors.watchdog No progress on 3"),
        (CRASHES, "Fatal Python error: Segmentation fault"),
        (GROUP, "| ValueError: no room"),
        (
            "import threading; threading.Thread(target=lambda: 1 / 0).start()",
            "ZeroDivisionError: division by zero",
        ),
    ],
)
def test_last_words_are_the_cause_and_not_where_each_thread_was(
    directory: DataDir, program: str, words: str
) -> None:
    child = RoleChild("trust", (sys.executable, "-c", program), directory)
    child.start()
    _wait(lambda: child.tick(time.monotonic()) is not None)
    assert child.last_words().endswith(words)


def test_child_hastened_forgets_its_failures_and_starts_without_its_delay(directory: DataDir) -> None:
    child = RoleChild("trust", (sys.executable, "-c", "pass"), directory)
    child.failures = 9
    child.start()
    now = time.monotonic()
    _wait(lambda: child.tick(now) is not None)
    assert child.tick(now) is None
    child.hasten()
    assert child.failures == 0
    assert child.tick(now) == "trust was started again"
    child.stop()


def test_child_ready_file_of_another_process_is_not_believed(directory: DataDir) -> None:
    child = RoleChild("decider", (sys.executable, "-c", "import time; time.sleep(600)"), directory)
    child.start()
    try:
        directory.status("decider").parent.mkdir(exist_ok=True)
        directory.status("decider").write_text(json.dumps({"pid": 1, "state": "ready", "address": "x"}))
        assert child.component.state == STARTING
    finally:
        child.stop()


def test_child_killed_is_started_again_at_once(serving: RoleChild) -> None:
    _wait(lambda: serving.component.state == READY)
    first = serving.component.pid
    assert first is not None

    os.kill(first, signal.SIGKILL)
    _wait(lambda: not process.is_alive(first))
    now = time.monotonic()
    said = serving.tick(now)
    assert said is not None
    assert "signal 9" in said
    assert serving.component.state == BACKING_OFF
    assert serving.tick(now + FIRST_DELAY_S) == "decider was started again"
    _wait(lambda: serving.component.state == READY)
    assert serving.component.pid != first
    assert serving.component.restarts == 1


def test_child_that_keeps_dying_counts_its_failures(directory: DataDir) -> None:
    child = RoleChild("trust", (sys.executable, "-c", "import sys; sys.exit('no such topic')"), directory)
    child.start()
    now = time.monotonic()
    for failures in (1, 2, 3):
        _wait(lambda: child.component.pid is None or not process.is_alive(child.component.pid))
        assert child.tick(now)
        assert child.failures == failures
        now += LONGEST_DELAY_S
        assert child.tick(now) == "trust was started again"
    _wait(lambda: child.component.pid is None or not process.is_alive(child.component.pid))
    child.stop()
    assert child.last_words() == "no such topic"


def test_restart_delay_is_none_at_first_then_doubles_up_to_its_ceiling() -> None:
    delays = [restart_delay_s(failures) for failures in range(1, 12)]
    assert delays[:AT_ONCE] == [0.0] * AT_ONCE
    assert delays[AT_ONCE : AT_ONCE + 2] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S]
    assert delays[-1] == LONGEST_DELAY_S
    assert delays == sorted(delays)


def test_describe_exit_tells_a_signal_from_a_code() -> None:
    assert describe_exit(-9) == "signal 9"
    assert describe_exit(3) == "exit code 3"


@pytest.mark.parametrize(("role", "expected"), [("gateway", "bWFzdGVy"), ("decider", "")])
def test_child_is_given_the_vaults_master_key_only_where_values_are_sealed(
    directory: DataDir, monkeypatch: pytest.MonkeyPatch, role: str, expected: str
) -> None:
    monkeypatch.setenv(MASTER_VARIABLE, "bWFzdGVy")
    assert process.MASTER_VARIABLE == MASTER_VARIABLE
    said = f"import os; print('key:' + os.environ.get({MASTER_VARIABLE!r}, ''))"
    child = RoleChild(role, (sys.executable, "-c", said), directory)

    child.start()
    _wait(lambda: child.last_words().startswith("key:"))

    assert child.last_words() == f"key:{expected}"
    child.stop()


def test_child_that_ended_by_an_error_says_why_until_it_is_ready_again(directory: DataDir) -> None:
    once = (
        "import pathlib, sys\nif not pathlib.Path(sys.argv[2]).exists(): sys.exit('no room in the views')\n"
    )
    mended = directory.root / "mended"
    command = (sys.executable, "-c", once + SAYS_READY, str(directory.status("projector")), str(mended))
    child = RoleChild("projector", command, directory)
    child.start()
    try:
        _wait(lambda: bool(child.tick(time.monotonic())))
        assert child.component.reason == "it ended (exit code 1): no room in the views"
        mended.touch()
        _wait(lambda: bool(child.tick(time.monotonic())))
        (starting,) = observed([child.component], directory)
        assert starting.state == READY or starting.reason == "it ended (exit code 1): no room in the views"
        _wait(lambda: child.component.state == READY)
        assert child.component.reason == ""
    finally:
        child.stop()


def test_crash_after_an_exception_of_a_thread_is_the_last_word() -> None:
    thread = (
        'Exception in thread x:\nTraceback (most recent call last):\n  File "a", line 1\nValueError: one\n'
    )
    assert last_words(thread) == "ValueError: one"
    assert last_words(f"{thread}Fatal Python error: Aborted\n") == "Fatal Python error: Aborted"
