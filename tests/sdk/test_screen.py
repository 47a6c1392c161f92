"""The command on a real terminal of 80 × 24, and interrupted while it follows."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from fcntl import ioctl
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from tests.sdk.scripted import Asked, Peer, Scripted
from tests.sdk.terminal import DIGEST, HOLD, VIEW, gateway
from tests.sdk.threaded import serving_thread

PLACET = Path(sys.executable).with_name("placet")
GOLDEN = Path(__file__).parents[1] / "golden" / "views" / "plain.2.txt"
ROWS, COLUMNS = 24, 80
WITHIN_S = 100.0
TEXT = re.sub(r"(?m)^digest: .*$", f"digest: {DIGEST}", GOLDEN.read_text("utf-8"))
SHOWN = {**VIEW, "text": TEXT, "view_digest": sha256(TEXT.encode()).hexdigest(), "version": 2}


@pytest.fixture
def script() -> Iterator[Scripted]:
    async def answer(asked: Asked) -> Response:
        is_view = asked.path == f"/v1/holds/{HOLD['hold_id']}/view"
        return JSONResponse(SHOWN) if is_view else await gateway(asked)

    with serving_thread(Scripted(on_http=answer)) as served:
        yield served


def environment(script: Scripted) -> dict[str, str]:
    return {**os.environ, "PLACET_URL": script.url, "PLACET_TOKEN": "t", "TERM": "xterm"}


def read_until(screen: int, end: bytes) -> str:
    told = b""
    while end not in told:
        assert select.select([screen], [], [], WITHIN_S)[0], told.decode()
        told += os.read(screen, 65536)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", told.decode()).replace("\r", "")


def test_approve_on_a_screen_of_24_lines_ends_with_what_is_asked_and_would_run(script: Scripted) -> None:
    screen, side = pty.openpty()
    ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [str(PLACET), "approve", HOLD["hold_id"]]
    process = subprocess.Popen(command, env=environment(script), stdin=side, stdout=side, stderr=side)
    os.close(side)
    try:
        lines = read_until(screen, b"[y/N]: ").split("\n")
        rows = [line[at : at + COLUMNS] for line in lines for at in range(0, max(len(line), 1), COLUMNS)]
        visible = rows[-ROWS:]
        for text in (
            "asked of the agent: Pay the March invoice of ACME.",
            "agent: billing-bot",
            "question: Pay 98.7 to GB29?",
            "tool: send_money",
            "reason: The March invoice.",
        ):
            assert text in visible, "\n".join(visible)
        assert visible[-4:-1] == ["arguments:", '  "amount": 98.7', '  "recipient": "GB29NWBK60161331926819"']
        assert visible[-1].startswith("Approve send_money with digest ")
        above = rows[: rows.index("asked of the agent: Pay the March invoice of ACME.")]
        for text in ("policy: production@3", 'roles: "treasurer"', "people needed: 2"):
            assert text in above, "what stands around is above, and nothing of it is left out"
        os.write(screen, b"y\n")
        read_until(screen, b"approved: send_money")
        assert process.wait(WITHIN_S) == 0
    finally:
        process.kill()
        os.close(screen)
    (decided,) = [asked.json() for asked in script.asked if asked.path.endswith("/decision")]
    assert decided["view_digest"] == SHOWN["view_digest"]


@pytest.mark.parametrize("command", [("inbox", "--follow"), ("events", "--follow")], ids=" ".join)
def test_interrupt_ends_what_follows_without_a_traceback(script: Scripted, command: tuple[str, ...]) -> None:
    subscribed = threading.Event()

    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            row = {"event_id": "2", "event_type": "ToolCallReleased", "execution_id": "e"}
            kind = "event" if command[0] == "events" else "hold_changed"
            await peer.say(type=kind, cursor="k2", hold_id="h2", **row)
            subscribed.set()

    script.on_frame = tell
    with subprocess.Popen(
        [PLACET, *command, "--json"],
        env=environment(script),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A suite that was started in the background by a shell has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        try:
            assert subscribed.wait(WITHIN_S)
            told = b""
            # Whole lines come at once, though nobody looks at a terminal.
            while b'"event_id": "2"' not in told:
                assert select.select([process.stdout], [], [], WITHIN_S)[0]
                told += os.read(process.stdout.fileno(), 65536)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=WITHIN_S)
        finally:
            process.kill()
    assert (process.returncode, said) == (130, b"")
