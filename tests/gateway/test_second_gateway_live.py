"""A second gateway is started beside a stack's own by the words of docs/operations.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ops.ports import free_port
from tests.gateway.conftest import Caller, Doors
from tests.house.sources import ROOT

pytestmark = [pytest.mark.stack, pytest.mark.broker]
READY_WITHIN_S, END_WITHIN_S = 120.0, 60.0


def documented(data_dir: Path, port: int) -> str:
    """The two commands of the page, for a stack and a port of this test."""
    lines = (ROOT / "docs" / "operations.md").read_text("utf-8").splitlines()
    (copied,) = [line.strip() for line in lines if line.startswith("    sed ")]
    (started,) = [line.strip() for line in lines if line.startswith("    python -m ops.roles gateway ")]
    words = f"{copied}\nexec {started}"
    mine = {".placet/": f"{data_dir}/", "8001": str(port)}
    assert all(said in words for said in mine)
    return re.sub(r"\.placet/|8001", lambda said: mine[said.group()], words)


@contextmanager
def second_gateway(doors: Doors) -> Iterator[str]:
    """Its address."""
    port = free_port()
    words = documented(doors.stack.data_dir, port)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with subprocess.Popen(["bash", "-ec", words], cwd=ROOT, env={**os.environ, "PATH": path}) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            assert process.wait(END_WITHIN_S) == 0
            (doors.stack.data_dir / "g2.json").unlink()


def test_second_gateway_is_started_by_the_documented_words(doors: Doors, bot: Caller, admin: Caller) -> None:
    with second_gateway(doors) as url:
        until = time.monotonic() + READY_WITHIN_S
        while not is_ready(url):
            assert time.monotonic() < until
            time.sleep(0.1)
        execution_id = bot.execution()
        cursor = bot.get(f"/v1/executions/{execution_id}").json()["cursor"]
        there = Caller(url, bot.token, bot.client)
        assert there.get(f"/v1/executions/{execution_id}?after={cursor}").status_code == 200
        call = there.propose(execution_id, "read_file")
        assert call["status"] == "released"
        again = bot.get(f"/v1/executions/{execution_id}/tool-calls/{call['call_id']}?after={call['cursor']}")
        assert again.json()["status"] == "released"
        owner = Caller(url, doors.token("root", "admin", tenant="default", project="*"), bot.client)
        names = {part["name"] for part in owner.get("/v1/components").json()["items"]}
        assert any("g2" in name for name in names), names


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz?part=gateway").status_code == 200
    except httpx.TransportError:
        return False
