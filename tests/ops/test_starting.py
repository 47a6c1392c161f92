"""A start waits for whoever decides and is read; what only follows may come later."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ops import daemon, start_progress
from ops import supervisor as supervisor_module
from ops.child import RoleChild
from ops.component import READY, STOPPED
from ops.config import DataDir, StackConfig
from ops.errors import RoleFailedError, StoppedEarlyError, UsageError
from ops.kafka.log_files import METADATA
from ops.options import UpOptions, settle
from ops.process import PACKAGE_ROOT, STOP_SIGNALS
from ops.status import Stack, read_stack
from ops.supervisor import FAILURES_BEFORE_READY, Supervisor
from tests.ops.test_child import SAYS_READY

Starting = Callable[[dict[str, str], list[str]], Supervisor]
NEVER_READY = "import time; time.sleep(600)"
# Each start of the first is a character of a file; the second is ready once there are enough.
STARTS = "import pathlib, sys, time\nfile = pathlib.Path(sys.argv[1]).parent.parent / 'starts'\n"
ENDS_FIVE_TIMES = (
    STARTS
    + "file.open('a').write('x')\n"
    + SAYS_READY.replace("time.sleep(600)", "time.sleep(600 if len(file.read_text()) > 5 else 0.5)")
)
READY_AFTER_IT = (
    STARTS + "while not file.exists() or len(file.read_text()) < 6: time.sleep(0.05)\n" + SAYS_READY
)


# A heartbeat a moment: of a role that starts, and reads the log.
READS = """
import datetime, json, os, pathlib, sys, time
path = pathlib.Path(sys.argv[1]); path.parent.mkdir(parents=True, exist_ok=True)
def say(left, stalled_ms):
    fresh, at = path.with_suffix(".new"), datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    said = {"pid": os.getpid(), "state": "starting", "at": at, "lag_records": left, "stalled_ms": stalled_ms}
    fresh.write_text(json.dumps(said)); fresh.replace(path); time.sleep(0.1)
"""
STANDS_STILL = "for moment in range(6_000): say(41_000, 100 * moment)"


def reads(steps: int, last: str) -> str:
    """A role that reads for tenths of a second, and what it does then."""
    return READS + f"for step in range({steps}): say(41_000 + {steps} - step, 0)\n" + last


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@pytest.fixture
def config(tmp_path: Path) -> Iterator[StackConfig]:
    """A stack whose gateway says that it is ready."""
    settled = settle(UpOptions(tmp_path, port=0), "127.0.0.1:1")
    server = HTTPServer((settled.gateway_host, settled.gateway_port), _Ready)
    Thread(target=server.serve_forever, daemon=True).start()
    yield settled
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "START_TIMEOUT_S", 2.0)


@pytest.fixture
def starting(config: StackConfig) -> Iterator[Starting]:
    """Makes a supervisor whose roles are programs that were started; they are stopped at the end."""
    roles: list[RoleChild] = []

    def make(programs: dict[str, str], said: list[str]) -> Supervisor:
        supervisor, directory = Supervisor(UpOptions(config.directory.root), said.append), config.directory
        for name, program in programs.items():
            command = (sys.executable, "-c", program, str(directory.status(name)))
            roles.append(RoleChild(name, command, directory))
            roles[-1].start()
        supervisor._roles = tuple(roles)
        return supervisor

    yield make
    for role in roles:
        role.stop()


def test_start_with_late_statistics_is_ready_and_says_so(config: StackConfig, starting: Starting) -> None:
    said: list[str] = []
    supervisor = starting({"decider": SAYS_READY, "trust": NEVER_READY}, said)
    supervisor._wait_ready(config)
    assert said[-1] == "Not ready yet: trust; decisions are made meanwhile"


def test_start_with_statistics_that_end_again_and_again_leaves_the_deciders_running(
    config: StackConfig, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "START_TIMEOUT_S", 600.0)
    said: list[str] = []
    supervisor = starting({"decider": SAYS_READY, "trust": "raise SystemExit(1)"}, said)
    supervisor._wait_ready(config)
    assert said[-1] == "Not ready yet: trust; decisions are made meanwhile"
    assert supervisor._roles[0].is_ready
    assert supervisor._roles[1].failures >= FAILURES_BEFORE_READY


def test_start_waits_for_what_it_needs_beside_statistics_that_end_again_and_again(
    config: StackConfig, starting: Starting
) -> None:
    fails = "import time; time.sleep(1.5); raise SystemExit('the port is taken')"
    supervisor = starting({"decider": SAYS_READY, "grpc": fails, "trust": "raise SystemExit(1)"}, [])
    with pytest.raises(RoleFailedError, match="grpc did not start"):
        supervisor._wait_ready(config)


def test_start_with_a_decider_that_was_ready_before_it_ended_waits_for_it(
    config: StackConfig, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "START_TIMEOUT_S", 60.0)
    said: list[str] = []
    supervisor = starting({"decider": ENDS_FIVE_TIMES, "trust": READY_AFTER_IT}, said)
    supervisor._wait_ready(config)
    assert said[-1] == "decider was started again"
    assert supervisor._roles[0].failures == 5 > FAILURES_BEFORE_READY


def test_start_with_a_decider_that_ends_again_and_again_is_refused(
    config: StackConfig, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "START_TIMEOUT_S", 600.0)
    supervisor = starting({"decider": "raise SystemExit('no key')", "trust": SAYS_READY}, [])
    with pytest.raises(RoleFailedError, match=r"decider did not start .*no key"):
        supervisor._wait_ready(config)


def test_start_with_late_decider_is_refused(config: StackConfig, starting: Starting) -> None:
    supervisor = starting({"decider": NEVER_READY, "trust": SAYS_READY}, [])
    with pytest.raises(RoleFailedError, match="decider did not start"):
        supervisor._wait_ready(config)


def test_start_with_a_decider_that_reads_a_long_log_waits_for_it_and_says_how_much_is_left(
    config: StackConfig, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_progress, "SAY_EVERY_S", 1.0)
    said: list[str] = []
    began = time.monotonic()
    supervisor = starting({"decider": reads(steps=40, last=SAYS_READY)}, said)
    supervisor._wait_ready(config)
    # Twice as long as a start without any progress.
    assert time.monotonic() - began > 4.0
    assert re.fullmatch(r"decider has 4\d,\d{3} records left to read", said[-1])


def test_start_with_a_decider_that_stands_still_in_the_log_is_refused_and_says_where(
    config: StackConfig, starting: Starting
) -> None:
    supervisor = starting({"decider": reads(steps=5, last=STANDS_STILL)}, [])
    with pytest.raises(
        RoleFailedError, match=r"decider did not start \(it has 41,000 records left to read; "
    ):
        supervisor._wait_ready(config)


def test_start_with_a_decider_that_never_ends_reading_is_refused_in_the_end(
    config: StackConfig, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "START_LONGEST_S", 3.0)
    supervisor = starting({"decider": reads(steps=6_000, last=NEVER_READY)}, [])
    with pytest.raises(RoleFailedError, match=r"decider did not start \(it has \d+,\d{3} records left"):
        supervisor._wait_ready(config)


@pytest.mark.parametrize("left", [(), ("meta.properties", f"{METADATA}/00000000000000000000.log")])
def test_start_without_the_log_that_the_directory_knows_makes_no_empty_one(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    (tmp_path / "topics.json").write_text("{}")
    for name in left:
        file = tmp_path / "kafka" / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("whole")
    with pytest.raises(UsageError, match=r"is not in .*/kafka/data: put it there"):
        Supervisor(UpOptions(tmp_path), print)._start_kafka()
    assert not (tmp_path / "kafka" / "server.properties").exists()


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("left", [(), ("00000000000000000000.log", "quorum-state")])
def test_start_without_kafkas_metadata_starts_no_kafka_beside_the_log(
    tmp_path: Path, left: tuple[str, ...], is_known: bool
) -> None:
    data = tmp_path / "kafka" / "data"
    (data / "placet.executions-0").mkdir(parents=True)
    (data / "meta.properties").touch()
    if left:
        (data / METADATA).mkdir()
    for name in left:
        (data / METADATA / name).touch()
    if is_known:
        (tmp_path / "topics.json").write_text("{}")
    with pytest.raises(UsageError, match=r"__cluster_metadata-0, .* is missing or empty: restore all of it"):
        Supervisor(UpOptions(tmp_path), print)._start_kafka()
    assert not (tmp_path / "kafka" / "server.properties").exists()


@pytest.fixture
def signals() -> Iterator[None]:
    """The suite's own handlers, after a test whose stack was asked to stop; hangups end a process until then."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def signalled_start(*numbers: int) -> Callable[[Supervisor], str]:
    """A start of Kafka in which signals arrive."""

    def start_kafka(supervisor: Supervisor) -> str:
        for number in numbers:
            signal.raise_signal(number)
        return "127.0.0.1:1"

    return start_kafka


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("again", STOP_SIGNALS)
def test_second_signal_changes_neither_the_stop_nor_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: int
) -> None:
    stop = Supervisor._stop

    def stop_later(supervisor: Supervisor) -> None:
        signal.raise_signal(again)
        stop(supervisor)

    monkeypatch.setattr(Supervisor, "_start_kafka", signalled_start(signal.SIGTERM))
    monkeypatch.setattr(Supervisor, "_stop", stop_later)
    with pytest.raises(StoppedEarlyError) as stopped:
        Supervisor(UpOptions(tmp_path, port=0), print).run(lambda stack: None)
    signal.raise_signal(again)
    assert stopped.value.exit_code == 128 + signal.SIGTERM
    assert read_stack(DataDir(tmp_path)).state == STOPPED


@pytest.mark.usefixtures("signals")
def test_stack_under_nohup_outlives_a_hangup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(Supervisor, "_start_kafka", signalled_start(signal.SIGHUP, signal.SIGINT))
    with pytest.raises(StoppedEarlyError) as stopped:
        Supervisor(UpOptions(tmp_path, port=0), print).run(lambda stack: None)
    assert stopped.value.exit_code == 128 + signal.SIGINT


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_start_that_a_signal_ends_was_never_up_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(Supervisor, "_start_kafka", signalled_start(number))
    told: list[Stack] = []
    with pytest.raises(StoppedEarlyError, match="stopped before it was ready") as stopped:
        Supervisor(UpOptions(tmp_path, port=0), print).run(told.append)
    assert stopped.value.exit_code == 128 + number
    assert told == []
    assert read_stack(DataDir(tmp_path)).state == STOPPED


def test_detached_start_whose_caller_has_gone_goes_on_and_says_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hears, tells = os.pipe()
    os.close(hears)
    watched: list[str] = []

    class Running:
        def __init__(self, options: UpOptions, say: Callable[[str], None]) -> None:
            self.say = say

        def run(self, on_ready: Callable[[Stack], None]) -> None:
            on_ready(Stack(READY, url="http://127.0.0.1:1"))
            watched.append("on")

    monkeypatch.setattr(supervisor_module, "Supervisor", Running)
    assert daemon.main(tells, UpOptions(tmp_path)) == 0
    assert watched == ["on"]
    ready, gone = capfd.readouterr().err.splitlines()
    assert ready.endswith("Ready at http://127.0.0.1:1")
    assert gone.endswith("The process that started this stack has ended and was not notified")


def test_detached_start_that_fails_after_its_caller_has_gone_leaves_no_traceback(tmp_path: Path) -> None:
    options = UpOptions(tmp_path, port=0, host="192.0.2.9")
    hears, tells = os.pipe()
    os.close(hears)
    done = subprocess.run(
        [sys.executable, "-m", "ops.daemon", str(tells)],
        input=daemon.to_json(options),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=PACKAGE_ROOT,
        pass_fds=(tells,),
    )
    os.close(tells)
    assert done.returncode == 2
    refused, gone = done.stderr.splitlines()
    assert "192.0.2.9 is not an address of this machine" in refused
    assert gone.endswith("has ended and was not notified")
