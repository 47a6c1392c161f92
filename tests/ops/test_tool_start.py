"""`placet tools start` on real processes: started, watched, started again, given up, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import jwt
import pytest

from ops import process
from ops.ports import free_port
from ops.tools.child import Launch
from ops.tools.supervision import FAILURES_MAX, Happened, Supervision
from placet.cli import run
from tests.servers.external_tool import COMMAND, started_tool, write_tool
from tests.servers.stack import PLACET, wait_for

BROKER = "localhost:8080"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_tool_is_ready_by_its_health_and_ends_with_the_signal(number: signal.Signals, tmp_path: Path) -> None:
    with started_tool(write_tool(tmp_path, BROKER)) as tool:
        pid = tool.next("started")["pid"]
        assert tool.next("ready") == {"event": "ready", "port": tool.port}
        tool.running.send_signal(number)
        assert tool.next("stopping")["signal"] == number.name
        assert tool.next("stopped")["exit_code"] != 0, "Python's own end by a signal"
        assert tool.ended() == 0
        assert process.living_in_group(pid) == []
        assert tool.printed.startswith("a line of the tool websocket\n")


def test_tool_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with started_tool(write_tool(tmp_path, BROKER)) as tool:
        first = tool.next("started")["pid"]
        tool.next("ready")
        os.kill(first, signal.SIGKILL)
        assert tool.next("ended")["cause"] == "signal 9"
        assert tool.next("started")["pid"] != first
        assert tool.next("ready")["port"] == tool.port


def test_change_of_a_tools_health_is_told(tmp_path: Path) -> None:
    with started_tool(write_tool(tmp_path, BROKER)) as tool:
        pid = tool.next("started")["pid"]
        tool.next("ready")
        os.kill(pid, signal.SIGUSR1)
        assert tool.next("health") == {"event": "health", "health": "NOT_SERVING", "before": "SERVING"}


def test_tool_without_the_health_service_is_told(tmp_path: Path) -> None:
    with started_tool(write_tool(tmp_path, BROKER), NO_HEALTH="1") as tool:
        assert tool.next("health")["health"] == "no health service"


def test_program_that_a_command_started_ends_before_the_command_is_started_again(tmp_path: Path) -> None:
    command = ("sh", "-c", f"{sys.executable} tool.py; exit 1")
    with started_tool(write_tool(tmp_path, BROKER, command)) as tool:
        shell = tool.next("started")["pid"]
        tool.next("ready")
        assert len(process.living_in_group(shell)) == 2
        os.kill(shell, signal.SIGKILL)
        again = tool.next("started")["pid"]
        assert process.living_in_group(shell) == []
        tool.running.send_signal(signal.SIGTERM)
        assert tool.ended() == 0
        assert process.living_in_group(again) == []


def test_killed_supervisor_leaves_no_process_behind_and_the_tool_can_be_started_again(tmp_path: Path) -> None:
    """The tool is a grandchild, as the server of `go run` is."""
    file = write_tool(tmp_path, BROKER, ("sh", "-c", f"{sys.executable} tool.py; exit 1"))
    with started_tool(file) as tool:
        shell = tool.next("started")["pid"]
        tool.next("ready")
        started_by_it = _children(tool.running.pid)
        assert shell in started_by_it
        tool.running.kill()
        wait_for(lambda: process.living_in_group(shell), _none)
        wait_for(lambda: [pid for pid in started_by_it if process.is_alive(pid)], _none)
    with started_tool(file) as tool:
        tool.next("ready")
        started_by_it = _children(tool.running.pid)
        tool.running.terminate()
        assert tool.ended() == 0
        assert [pid for pid in started_by_it if process.is_alive(pid)] == [], "the guard ends with the tool"


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text("utf-8").split()]


def _none(found: list[int]) -> bool:
    return not found


def test_command_that_always_fails_is_given_up(tmp_path: Path) -> None:
    file = write_tool(tmp_path, BROKER, ("sh", "-c", "exit 7"))
    done = subprocess.run([PLACET, "tools", "start", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"The tool ended {FAILURES_MAX} times soon after its start (at last: exit code 7)" in done.stderr
    assert done.stdout.count("The tool was started (process ") == FAILURES_MAX
    assert "The tool ended (exit code 7); starting it again in 0.2 s." in done.stdout


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        (["agent"], ""),
        (["admin", "reviewer"], "which has the roles admin, reviewer"),
        (["agent", "a\x1b"], "a\\u{1b}"),
    ],
)
def test_tool_that_gets_a_token_which_can_decide_is_started_with_a_warning(
    roles: list[str], told: str, tmp_path: Path
) -> None:
    file = write_tool(tmp_path, BROKER, ("sh", "-c", "exit 7"))
    token = jwt.encode({"roles": roles}, "k" * 32, "HS256")
    command: list[str | Path] = [PLACET, "--token", token, "tools", "start", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told in done.stderr
    assert ("warning: " in done.stderr) is bool(told)
    assert token not in done.stderr


def test_tool_that_ignores_the_signal_is_killed_after_a_grace(tmp_path: Path) -> None:
    file, told = write_tool(tmp_path, BROKER), list[Happened]()
    environ = {**os.environ, "PORT": str(free_port()), "BROKER_TYPE": "websocket", "IGNORE_SIGTERM": "1"}
    launch = Launch(COMMAND, file.parent, environ, int(environ["PORT"]))

    def tell(happened: Happened) -> None:
        told.append(happened)
        if happened.event == "ready":
            os.kill(os.getpid(), signal.SIGTERM)

    async def supervise() -> None:
        await Supervision(launch, tell, stop_grace_s=0.2).run()

    asyncio.run(supervise())
    assert [one.event for one in told] == ["started", "ready", "stopping", "killed", "stopped"]
    assert told[-1].fields == {"exit_code": -signal.SIGKILL}
    assert process.living_in_group(told[0].fields["pid"]) == []


def test_command_that_is_not_there_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "start", str(write_tool(tmp_path, BROKER, ("./not-there",)))]) == 2
    told = capsys.readouterr().err
    assert f"The tool's command './not-there' cannot be started in {tmp_path}" in told
    assert "install it, or correct `command`" in told


def test_port_that_is_taken_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_tool(tmp_path, BROKER)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        file.write_text(
            f'{{"port": {port}, "command": ["true"], "broker": {{"type": "websocket", "address": "h:1"}}}}'
        )
        assert run(["tools", "start", str(file)]) == 2
    assert f"Nothing can listen on port {port} now" in capsys.readouterr().err


class _Other(BaseHTTPRequestHandler):
    """A web server that is no gateway."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *arguments: object) -> None:
        pass


def test_file_without_a_command_needs_a_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLACET_URL", raising=False)
    file = write_tool(tmp_path, f"127.0.0.1:{free_port()}", None)
    assert run(["tools", "start", str(file)]) == 3
    assert "No gateway answers at broker.address 127.0.0.1:" in capsys.readouterr().err
    with HTTPServer(("127.0.0.1", 0), _Other) as other:
        thread = Thread(target=other.serve_forever)
        thread.start()
        try:
            file = write_tool(tmp_path, f"127.0.0.1:{other.server_port}", None)
            assert run(["tools", "start", str(file)]) == 2
        finally:
            other.shutdown()
            thread.join()
    told = capsys.readouterr().err
    assert "is not a gateway of Placet: set PLACET_URL to the gateway's address, or add `command`." in told
    assert run(["--url", "ftp://x", "tools", "start", str(file)]) == 2
    assert "PLACET_URL (or --url) is not the address of a gateway" in capsys.readouterr().err
