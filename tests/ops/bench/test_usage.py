"""What processes used, against what they must have used."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from ops.bench.usage import cpu_ms, peak_memory_mb

WORK = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"


def test_cpu_of_a_process_counts_its_children_too() -> None:
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORK!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as working:
        assert working.stdout is not None
        assert working.stdin is not None
        assert working.stdout.readline() == "done\n"
        used = cpu_ms({"it": working.pid})["it"]
        working.stdin.close()
    assert used >= 290


def test_cpu_of_a_process_keeps_that_of_children_that_have_ended() -> None:
    ended = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}]); print('done', flush=True); input()"
    work = WORK.removesuffix("\nprint('done', flush=True)\ninput()")
    with subprocess.Popen(
        [sys.executable, "-c", ended.format(work)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        assert parent.stdout.readline() == "done\n"
        used = cpu_ms({"it": parent.pid})["it"]
        parent.stdin.close()
    assert used >= 290


def test_peak_memory_keeps_what_was_given_back() -> None:
    before = peak_memory_mb(os.getpid())
    held = bytearray(int(64 * 2**20 + before * 2**20))
    for at in range(0, len(held), 4096):
        held[at] = 1
    del held
    assert peak_memory_mb(os.getpid()) >= before + 32


def test_peak_memory_of_nobody_is_an_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        deadline = time.monotonic() + 10
        while gone.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with pytest.raises(FileNotFoundError):
        peak_memory_mb(gone.pid)
