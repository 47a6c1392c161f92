"""Rebuild: `placet replay` of a log made before, on SQLite, against bare decoding, rows and tracking."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ops.bench.agent import READ, WRITE, run_id
from ops.bench.bench import Bench
from ops.bench.caught_up import until_projected
from ops.bench.load import TIMEOUT_S, BenchFailedError
from ops.bench.result import Figure, Result, Target
from ops.bench.seed import seed, until_held
from ops.bench.site import Site

EVENTS_A_SECOND = Target(30_000, at_most=False)


async def fill(job: dict[str, Any]) -> dict[str, Any]:
    """Make a log: in each execution nine calls that are released, and one that is held."""
    site = Site(**job["site"])
    await seed(site, run_id(), job["executions"], {9: WRITE}, READ)
    await until_held(site, job["executions"])
    await until_projected(site)
    return {}


def measure(bench: Bench) -> Result:
    """Events a second of a rebuild that is then compared with the live view row by row."""
    bench.load("ops.bench.rebuild:fill", "making a log", executions=bench.size(8_000, 100))
    bare = bench.load("ops.bench.bare:load", "bare decoding, rows and tracking")
    bench.tell("placet replay")
    replayed = replay(str(Path(sys.executable).with_name("placet")), bench.site)
    rate = replayed["records"] / replayed["seconds"]
    target = None if bench.is_quick else EVENTS_A_SECOND
    return Result(
        "rebuild",
        (
            Figure("placet replay on SQLite", rate, "events/s", target=target),
            Figure("placet replay against bare decode + rows + tracking", rate, "events/s", bare["rate"]),
            Figure("events in the log", replayed["records"], "events"),
        ),
        "the time of the comparison is not in the rate" if replayed["equal"] else "",
    )


def replay(placet: str, site: Site, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Rebuild a stack's views and compare them with the live ones.

    Args:
        placet: the program of the stack's own version.
        site: the stack.
        environ: the variables that the program runs with; this process's by default.

    Returns:
        What the command prints with `--json`.

    Raises:
        BenchFailedError: it failed, or the rebuilt views are not equal.
    """
    command = [placet, "replay", "--json", "--data-dir", site.data_dir]
    done = subprocess.run(  # noqa: S603 - the command is built here
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environ
    )
    if done.returncode != 0:
        raise BenchFailedError(f"placet replay failed: {done.stderr.strip() or done.stdout.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if not answer["equal"]:
        raise BenchFailedError(f"The rebuilt view differs from the live one: {answer}")
    return answer
