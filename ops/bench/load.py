"""Loads run in a process of their own, so that their own work is not taken for the stack's.

python -m ops.bench.load MODULE:FUNCTION reads a job (JSON) from its input and prints the load's answer (JSON).
"""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import uvloop

from host.garbage_collector import collect_seldom
from ops.bench.machine import allow_open_files
from ops.errors import OpsError
from ops.process import PACKAGE_ROOT

TIMEOUT_S = 1_800.0


class BenchFailedError(OpsError):
    """A load could not be carried out: what it says is no figure, but what went wrong."""

    exit_code = 1


def run_load(function: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Run a load in a fresh process.

    Args:
        function: `module:function`, a coroutine function from a job to an answer.
        job: JSON values.

    Raises:
        BenchFailedError: it failed; the message ends with its last words.
    """
    done = subprocess.run(  # noqa: S603 - the command is built here
        [sys.executable, "-m", "ops.bench.load", function],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=PACKAGE_ROOT,
    )
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["it said nothing"]
        raise BenchFailedError(f"The load {function} failed: {words[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(function: str) -> None:
    """Run one load in this process."""
    allow_open_files()
    collect_seldom()
    module, _, name = function.partition(":")
    load = getattr(importlib.import_module(module), name)
    sys.stdout.write(json.dumps(uvloop.run(_run(load, json.load(sys.stdin)))))


async def _run(load: Any, job: dict[str, Any]) -> Any:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await load(job)
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(error: BaseException) -> BaseException:
    """What went wrong first, out of the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    main(sys.argv[1])
