"""The whole stack as processes: up, told of, hurt, mended, down."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ops import process
from ops.component import Component
from ops.config import DataDir
from ops.errors import DataDirectoryInUseError
from ops.locks import lock_directory
from ops.role import ALWAYS
from ops.status import read_stack
from tests.servers.stack import PLACET, RunningStack, running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]
PARTS = {"kafka", *ALWAYS}
SECRET = "canary-in-an-address"
# Words of the file formats that a path comes into: .properties, log4j's, URIs, lists at commas, faust's braces.
ANY_NAME = "dä tä ☃ #é,b\\u0041 ${x}{y}?%41='\"!"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    webhook = f"http://127.0.0.1:9/heads?key={SECRET}"
    with running_stack(
        tmp_path_factory.mktemp("stack") / ANY_NAME, "--partitions", "2", "--audit-webhook", webhook
    ) as running:
        yield running


def _is_free(directory: Path) -> bool:
    try:
        os.close(lock_directory(directory))
    except DataDirectoryInUseError:
        return False
    return True


def _wait_dead(pids: set[int]) -> None:
    wait_for(lambda: {pid for pid in pids if process.is_alive(pid)}, lambda alive: not alive)


def test_up_detached_returns_when_readyz_answers(stack: RunningStack) -> None:
    status = json.loads(stack.placet("status", "--json").stdout)
    assert status == stack.status()
    assert {part["name"]: part["state"] for part in status["components"]} == dict.fromkeys(PARTS, "ready")
    with urllib.request.urlopen(f"{status['url']}/readyz", timeout=5) as answer:
        assert answer.status == 200
    assert status["sign_in_url"] is None
    assert (status["grpc_address"], status["bridge_address"]) == (None, None)


def test_up_writes_a_token_that_opens_the_gateway_and_only_its_owner_reads(stack: RunningStack) -> None:
    assert stat.S_IMODE((stack.data_dir / "admin.token").stat().st_mode) == 0o600
    request = urllib.request.Request(
        f"{stack.status()['url']}/v1/components", headers={"Authorization": f"Bearer {stack.token}"}
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.status == 200


def test_case_40_no_file_of_a_stack_is_for_others(stack: RunningStack) -> None:
    stack.wait_ready()
    wider = {
        str(path): oct(path.lstat().st_mode)
        for path in (stack.data_dir, *stack.data_dir.rglob("*"))
        if not path.is_symlink() and path.lstat().st_mode & 0o077
    }
    assert wider == {}
    assert SECRET in (stack.data_dir / "placet.json").read_text(encoding="utf-8")


def test_case_40_no_argument_list_holds_a_secret(stack: RunningStack) -> None:
    supervisor = read_stack(DataDir(stack.data_dir)).pid
    pids = {supervisor, *(part["pid"] for part in stack.wait_ready().values())}
    assert not [pid for pid in pids if SECRET in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")]


def test_up_again_on_the_same_directory_is_a_usage_error(stack: RunningStack) -> None:
    done = stack.placet("up", "--port", "0", "--detach")
    assert done.returncode == 2
    assert "is in use by the stack of another process (" in done.stderr
    assert stack.status()["state"] == "ready"


def test_doctor_on_a_running_stack_is_healthy(stack: RunningStack) -> None:
    done = stack.placet("doctor", "--json")
    answer = json.loads(done.stdout)
    assert answer["healthy"], answer
    assert {"topics", "clock", "kafka version"} <= {found["check"] for found in answer["checks"]}
    assert done.returncode == 0


@pytest.mark.parametrize("part", sorted(PARTS))
def test_component_killed_is_started_again(stack: RunningStack, part: str) -> None:
    before = stack.wait_ready()[part]
    os.kill(before["pid"], signal.SIGKILL)
    _wait_dead({before["pid"]})
    after = wait_for(
        stack.components,
        lambda parts: (
            parts[part]["pid"] not in (None, before["pid"])
            and all(found["state"] == "ready" for found in parts.values())
        ),
    )[part]
    assert after["restarts"] > before["restarts"]


def _starting_kafka(stack: RunningStack, killed: int) -> int:
    """Kill processes, and hold the broker's next one in its start; its process id."""
    supervised = DataDir(stack.data_dir)

    def parts() -> dict[str, Component]:
        return {part.name: part for part in read_stack(supervised).components}

    os.kill(killed, signal.SIGKILL)
    found = wait_for(parts, lambda parts: parts["kafka"].state == "starting" and parts["kafka"].pid != killed)
    pid = found["kafka"].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    return pid


def _readyz(url: str) -> int:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_gateway_killed_together_with_kafka_answers_while_kafka_starts(stack: RunningStack) -> None:
    before = stack.wait_ready()
    os.kill(before["gateway"]["pid"], signal.SIGKILL)
    held = _starting_kafka(stack, before["kafka"]["pid"])
    try:
        assert wait_for(lambda: _readyz(before["gateway"]["address"]), bool) == 503
        status = stack.status()
        assert (status["state"], {part["name"]: part["state"] for part in status["components"]}["kafka"]) == (
            "degraded",
            "starting",
        )
    finally:
        os.kill(held, signal.SIGCONT)
    after = stack.wait_ready()
    assert after["kafka"]["pid"] == held
    wait_for(lambda: _readyz(after["gateway"]["address"]), lambda status: status == 200)


def test_gateway_asked_to_end_while_kafka_is_away_ends_as_one_that_was_asked(stack: RunningStack) -> None:
    before = stack.wait_ready()
    supervisor = stack.data_dir / "logs" / "supervisor.log"
    log = stack.data_dir / "logs" / "gateway.log"
    told, printed = supervisor.stat().st_size, log.stat().st_size
    held = _starting_kafka(stack, before["kafka"]["pid"])
    try:
        wait_for(lambda: _readyz(before["gateway"]["address"]), lambda status: status == 503)
        os.kill(before["gateway"]["pid"], signal.SIGTERM)
        _wait_dead({before["gateway"]["pid"]})
        said = wait_for(lambda: supervisor.read_bytes()[told:].decode(), lambda said: "gateway ended" in said)
        assert "gateway ended (exit code 0)" in said
        assert "Traceback" not in log.read_bytes()[printed:].decode()
    finally:
        os.kill(held, signal.SIGCONT)
    stack.wait_ready()


def test_down_while_kafka_starts_again_ends_every_process(tmp_path: Path) -> None:
    with running_stack(tmp_path, "--partitions", "1") as stack:
        pids = {part["pid"] for part in stack.components().values()}
        held = _starting_kafka(stack, stack.pid("kafka"))
        assert stack.placet("down").stdout == "Stopped.\n"
        _wait_dead({*pids, held})


def test_down_ends_every_process_and_another_partition_count_is_refused_later(tmp_path: Path) -> None:
    directory = DataDir(tmp_path / ANY_NAME)
    with running_stack(directory.root, "--partitions", "2") as stack:
        pids = {part["pid"] for part in stack.components().values()}
        supervisor = read_stack(directory).pid
        assert supervisor is not None
        assert stack.placet("down").stdout == "Stopped.\n"
        _wait_dead({*pids, supervisor})
        assert stack.placet("status").returncode == 3
        done = stack.placet("up", "--port", "0", "--partitions", "3", "--detach")
        assert done.returncode == 2
        assert "start with --partitions 2" in done.stderr
        assert stack.status()["state"] == "failed"
        assert not any(part["pid"] for part in stack.components().values())
    # The partitions that it told of were those of the log, which lies in the directory and nowhere else.
    assert len(list((directory.kafka / "data").glob("placet.executions-*/*.log"))) == 2
    assert list(tmp_path.iterdir()) == [directory.root]


def test_up_in_the_foreground_stops_cleanly_on_interrupts(tmp_path: Path) -> None:
    stack = RunningStack(tmp_path)
    command = [str(PLACET), "up", "--data-dir", str(tmp_path), "--port", "0", "--partitions", "1"]
    command += ["--audit-webhook", f"http://127.0.0.1:9/heads?key={SECRET}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("Placet is ready at http://127.0.0.1:")
        pids = {part["pid"] for part in stack.components().values()}
        assert SECRET not in Path(f"/proc/{running.pid}/cmdline").read_text(encoding="utf-8")
        deadline_s = time.monotonic() + 60
        # Somebody who is impatient, to the very end.
        while running.poll() is None and time.monotonic() < deadline_s:
            running.send_signal(signal.SIGINT)
            time.sleep(0.002)
        assert running.stderr is not None
        assert (running.poll(), "Traceback" in running.stderr.read()) == (0, False)
    assert not {pid for pid in pids if process.is_alive(pid)}


def test_up_interrupted_before_it_is_ready_leaves_with_the_interrupts_code(tmp_path: Path) -> None:
    command = [str(PLACET), "up", "--data-dir", str(tmp_path), "--port", "0", "--partitions", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "Starting Kafka\n"
        running.send_signal(signal.SIGINT)
        said, warned = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, "")
    assert warned == "The stack was stopped before it was ready; none of its processes is left running.\n"


def test_supervisor_killed_leaves_no_process_behind_and_the_directory_free(tmp_path: Path) -> None:
    with running_stack(tmp_path, "--partitions", "1") as stack:
        pids = {part["pid"] for part in stack.components().values()}
        supervisor = read_stack(DataDir(tmp_path)).pid
        assert supervisor is not None
        os.kill(supervisor, signal.SIGKILL)
        _wait_dead(pids)
        assert stack.status()["state"] == "stopped"
        # A process that was killed gives its files back a moment later.
        for directory in (tmp_path, tmp_path / "kafka"):
            wait_for(partial(_is_free, directory), bool)
