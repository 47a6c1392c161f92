"""An external tool as its authors write one, started by `placet tools start` as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ops import process
from ops.ports import free_port
from tests.servers.stack import PLACET

ENDS_WITHIN_S = 30.0
PROGRAM = """
import json, os, signal
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from websockets.sync.client import connect

STATES = health_pb2.HealthCheckResponse


def ask(prompt, context):
    headers = {"Authorization": "Bearer " + os.environ["PLACET_TOKEN"]}
    with connect(f"ws://{os.environ['BROKER_ADDRESS']}/human-bridge", additional_headers=headers) as bridge:
        bridge.send(json.dumps({"type": "publish", "prompt": prompt.decode()}))
        for message in map(json.loads, bridge):
            if message["type"] == "answer":
                return message["response"].encode()
            if message["type"] == "error":
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, json.dumps(message))


if "IGNORE_SIGTERM" in os.environ:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
server, checks = grpc.server(ThreadPoolExecutor()), health.HealthServicer()
signal.signal(signal.SIGUSR1, lambda number, frame: checks.set("", STATES.NOT_SERVING))
if "NO_HEALTH" not in os.environ:
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
handlers = {"Ask": grpc.unary_unary_rpc_method_handler(ask)}
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Asking", handlers)])
server.add_insecure_port(f"127.0.0.1:{os.environ['PORT']}")
server.start()
print("a line of the tool", os.environ["BROKER_TYPE"], flush=True)
while True:
    signal.pause()
"""
COMMAND = (sys.executable, "tool.py")


def write_tool(directory: Path, broker: str, command: Sequence[str] | None = COMMAND) -> Path:
    """A tool's program and its config.json with a free port; None leaves `command` out."""
    (directory / "tool.py").write_text(PROGRAM, "utf-8")
    given = {} if command is None else {"command": list(command)}
    value = {"port": free_port(), **given, "broker": {"type": "websocket", "address": broker}}
    file = directory / "config.json"
    file.write_text(json.dumps(value), "utf-8")
    return file


class StartedTool:
    """`placet tools start --json` as a process."""

    def __init__(self, file: Path, running: subprocess.Popen[str], printed: Path) -> None:
        self.port: int = json.loads(file.read_text("utf-8"))["port"]
        self.running = running
        self._printed = printed

    def next(self, event: str) -> dict[str, Any]:
        """The next event of a kind; those before it are passed over."""
        assert self.running.stdout is not None
        for line in self.running.stdout:
            found: dict[str, Any] = json.loads(line)
            if found["event"] == event:
                return found
        raise AssertionError(f"it ended without {event}: {self.printed}")

    @property
    def printed(self) -> str:
        """What the command and the tool wrote on standard error."""
        return self._printed.read_text("utf-8")

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self.running.wait(ENDS_WITHIN_S)


@contextmanager
def started_tool(file: Path, **variables: str) -> Iterator[StartedTool]:
    """A tool that is started by its file, and stopped at the end."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("PLACET_")}
    printed = file.parent / "printed.log"
    with printed.open("w", encoding="utf-8") as output:
        running = subprocess.Popen(
            [PLACET, "tools", "start", str(file), "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env=environ | variables,
        )
    with running:
        try:
            yield StartedTool(file, running, printed)
        finally:
            process.stop(running, ENDS_WITHIN_S)  # type: ignore[arg-type]
