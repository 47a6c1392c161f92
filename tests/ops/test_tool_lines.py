"""Lines that a tool's supervisor prints: whoever reads them, or does not, never holds it up."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.tools.lines import WAITING_MAX, Lines
from ops.tools.supervision import FAILURES_MAX
from tests.servers.external_tool import write_tool
from tests.servers.stack import PLACET, wait_for

BROKER = "localhost:8080"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    yield reads, writes
    for descriptor in (reads, writes):
        os.close(descriptor)


def missing(count: int) -> str:
    return f"{count} missing"


def fill(writes: int) -> int:
    """Fill a pipe; returns how many bytes are in it."""
    os.set_blocking(writes, False)
    filled = 0
    try:
        while True:
            filled += os.write(writes, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writes, True)
    return filled


def read(reads: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += os.read(reads, size - len(found))
    return found


def test_every_line_is_written_in_order_before_the_end(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    with Lines(writes, missing) as lines:
        for number in range(100):
            lines.print(f"line {number} ж")
    assert os.read(reads, 65536).decode().splitlines() == [f"line {number} ж" for number in range(100)]


@pytest.mark.parametrize("is_blocking", [True, False])
def test_oldest_lines_are_dropped_and_counted_while_nobody_reads(
    pipe: tuple[int, int], *, is_blocking: bool
) -> None:
    reads, writes = pipe
    filled = fill(writes)
    os.set_blocking(writes, is_blocking)
    with Lines(writes, missing) as lines:
        lines.print("first")
        wait_for(lambda: lines.waiting, lambda waiting: waiting == 0)
        for number in range(WAITING_MAX + 7):
            lines.print(f"line {number}")
        read(reads, filled)
        expected = ["first", "7 missing", *(f"line {number}" for number in range(7, WAITING_MAX + 7))]
        text = "".join(f"{line}\n" for line in expected)
        assert read(reads, len(text)).decode() == text


def test_end_does_not_wait_for_ever_for_a_reader_who_is_not_there(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    filled = fill(writes)
    with Lines(writes, missing, written_within_s=0.05) as lines:
        lines.print("last")
    read(reads, filled)
    assert os.read(reads, 100) == b"last\n"


def test_line_that_cannot_be_written_is_counted_once_others_can(tmp_path: Path) -> None:
    """A full disk for the first line, and a file with room for the next."""
    full, file = os.open("/dev/full", os.O_WRONLY), tmp_path / "out"
    with Lines(full, missing) as lines:
        lines.print("lost")
        wait_for(lambda: lines.dropped, lambda dropped: dropped == 1)
        with file.open("wb") as room:
            os.dup2(room.fileno(), full)
        lines.print("written")
    os.close(full)
    assert file.read_text("utf-8") == "1 missing\nwritten\n"


def test_full_standard_output_holds_up_neither_the_supervision_nor_its_end(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    reads, writes = pipe
    filled = fill(writes)
    began = tmp_path / "began"
    file = write_tool(tmp_path, BROKER, ("sh", "-c", f"echo $$ >> {began}; exec sleep 1000"))
    with subprocess.Popen([PLACET, "tools", "start", file, "--json"], stdout=writes) as running:
        try:
            wait_for(lambda: _lines(began), lambda pids: len(pids) == 1)
            os.kill(int(_lines(began)[0]), signal.SIGKILL)
            wait_for(lambda: _lines(began), lambda pids: len(pids) == 2)
            running.terminate()
            assert running.wait(30) == 0, "with a reader who never reads"
        finally:
            running.kill()
    read(reads, filled)
    assert select.select((reads,), (), (), 0)[0] == [], "nothing was written, and nothing waits"


def test_last_line_reaches_a_reader_who_is_late(tmp_path: Path, pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    filled = fill(writes)
    began = tmp_path / "began"
    file = write_tool(tmp_path, BROKER, ("sh", "-c", f"echo $$ >> {began}; exit 7"))
    with subprocess.Popen([PLACET, "tools", "start", file, "--json"], stdout=writes) as running:
        wait_for(lambda: _lines(began), lambda pids: len(pids) == FAILURES_MAX)
        read(reads, filled)
        assert running.wait(30) == 1
    told = [json.loads(line) for line in os.read(reads, 65536).splitlines()]
    assert [one["event"] for one in told] == ["started", "ended"] * FAILURES_MAX
    assert told[-1] == {"event": "ended", "cause": "exit code 7", "restart_in_seconds": None}


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []
