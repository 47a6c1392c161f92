"""One of the two stacks: started by the `placet up` of its own tree, and reached by its outward interface alone."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from ops import process
from ops.bench.against.revision import Tree
from ops.bench.bench import UNLIMITED, publish
from ops.bench.load import BenchFailedError, run_load
from ops.bench.site import Site, site_of
from ops.component import KAFKA
from ops.config import DataDir

READY_WITHIN_S = 180.0
STOP_GRACE_S = 60.0
POLL_S = 0.5
LOG = "up.log"
LIMITS = ("--requests-per-second", "--agent-proposals-per-minute", "--tenant-proposals-per-minute")


@dataclass(frozen=True, slots=True)
class Side:
    """A running stack of a tree.

    Attributes:
        tree: what it was started from.
        site: its addresses, and tokens of its own issuer.
        supervisor: the process that all its others descend from.
        parts: the process of each part by its name, the broker's among them.
    """

    tree: Tree
    site: Site
    supervisor: int
    parts: Mapping[str, int]

    def load(self, function: str, **job: Any) -> dict[str, Any]:
        """Run a load of the working tree (`module:function`) on this stack, in a process of its own."""
        processes = {"supervisor": self.supervisor, "parts": self.parts}
        return run_load(function, {"site": asdict(self.site), "processes": processes, **job})


@contextmanager
def spawned(tree: Tree) -> Iterator[tuple[Popen[bytes], Path]]:
    """A stack that starts, in a fresh directory; stopped and removed at the end.

    It runs as a child that dies with this process, so that nothing of it outlives a run that is killed.
    """
    root = Path(tempfile.mkdtemp(prefix="placet-bench-"))
    try:
        limits = (word for limit in LIMITS for word in (limit, str(UNLIMITED)))
        command = tree.command("up", "--data-dir", str(root), "--port", "0", *limits)
        running = process.spawn(command, root / LOG, tree.environ, cwd=tree.root)
        try:
            yield running, root
        finally:
            process.stop(running, STOP_GRACE_S)
    finally:
        shutil.rmtree(root)


def ready(tree: Tree, running: Popen[bytes], root: Path, policy: Path) -> Side:
    """Wait until a spawned stack serves, and publish what the loads need, this policy among it.

    Raises:
        BenchFailedError: it ended, or is not ready in time; the message has its last words.
    """
    parts = _parts(tree, running, root)
    site = site_of(DataDir(root), lambda subject, role: _token(tree, root, subject, role))
    publish(site, policy)
    return Side(tree, site, running.pid, parts)


def _parts(tree: Tree, running: Popen[bytes], root: Path) -> dict[str, int]:
    deadline = time.monotonic() + READY_WITHIN_S
    while (asked := tree.placet("status", "--json", "--data-dir", str(root))).returncode != 0:
        if running.poll() is not None or time.monotonic() > deadline:
            words = (root / LOG).read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"]
            raise BenchFailedError(f"{tree.name}: the stack did not start: {words[-1]}")
        time.sleep(POLL_S)
    parts = {part["name"]: part["pid"] for part in json.loads(asked.stdout)["components"]}
    if KAFKA not in parts:
        raise BenchFailedError(f"{tree.name}: the stack has no broker of its own, only {', '.join(parts)}.")
    return parts


def _token(tree: Tree, root: Path, subject: str, role: str) -> str:
    agent = ("--agent", subject) if role == "agent" else ()
    issued = tree.said(
        *("token", "issue", "--subject", subject, "--role", role, *agent, "--data-dir", str(root), "--json")
    )
    return str(json.loads(issued)["token"])
