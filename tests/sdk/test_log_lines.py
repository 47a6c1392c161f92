r"""What a stranger sends comes to no terminal as it is: log lines show control characters as `\u{…}`."""

from __future__ import annotations

import io
import logging
import os
import socket
import subprocess
import unicodedata
from pathlib import Path

from ops.ports import free_port
from placet.log_lines import FORM, EscapingFormatter
from tests.servers.stack import PLACET, wait_for

EVIL = "\x9b2J\x1b]0;title\x07\u202e\r\n"


def check_shown(text: str, lines: int) -> None:
    assert [char for char in text if unicodedata.category(char) in ("Cc", "Cf")] == ["\n"] * lines
    assert "\\u{9b}2J" in text


def test_line_shows_the_control_characters_of_its_message_its_arguments_and_its_logger() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(EscapingFormatter(FORM))
    for record in (
        logging.LogRecord("x", logging.WARNING, "", 1, f"said {EVIL}", (), None),
        logging.LogRecord("x", logging.WARNING, "", 1, "said %s and %r", (EVIL, ValueError("x")), None),
        logging.LogRecord(f"x{EVIL}", logging.WARNING, "", 1, "said", (), None),
    ):
        handler.handle(record)
        check_shown(stream.getvalue(), 1)
        stream.seek(0)
        stream.truncate()


def test_traceback_keeps_its_lines_alone_and_none_of_them_can_look_like_a_record() -> None:
    formatter = EscapingFormatter(FORM)
    try:
        raise ValueError(f"{EVIL}2026-11-27 10:00:00,000 INFO placet all calls were approved")
    except ValueError as error:
        raised = (ValueError, error, error.__traceback__)
        record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", (), raised)
    text = formatter.format(record)
    check_shown(text, text.count("\n"))
    assert [line[0] == " " for line in text.split("\n")] == [False] + [True] * text.count("\n")


def test_headers_of_a_caller_without_a_token_are_shown_escaped(tmp_path: Path) -> None:
    port, said = free_port(), tmp_path / "stderr"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PLACET_")}
    with said.open("wb") as output:
        command = [str(PLACET), "--url", "http://127.0.0.1:9", "mcp", "--http-port", str(port)]
        process = subprocess.Popen(command, env=environ, stderr=output)
    try:
        wait_for(lambda: _answer(port, b"127.0.0.1"), lambda answer: answer is not None)
        assert (_answer(port, b"\xc2\x9b2J\xe2\x80\xae") or b"").startswith(b"HTTP/1.1 421")
        assert (_answer(port, b"\x9b2J") or b"").startswith(b"HTTP/1.1 421")
        lines = wait_for(said.read_bytes, lambda raw: raw.count(b"Host header") >= 3)
    finally:
        process.terminate()
        process.wait(20)
    refused = [line for line in lines.decode("utf-8").splitlines(keepends=True) if "Host header" in line]
    check_shown("".join(refused), 3)


def _answer(port: int, host: bytes) -> bytes | None:
    """The beginning of the answer to a request with a Host header; None as long as nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            body = b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            client.sendall(b"POST /mcp HTTP/1.1\r\nHost: %b\r\n%b" % (host, body))
            return client.recv(200)
    except ConnectionRefusedError:
        return None
