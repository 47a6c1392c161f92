"""A stack to measure, in a directory of its own, and what a benchmark is given."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gateway.identity.issuer import issue
from ops.bench.load import run_load
from ops.bench.site import AGENT, PROJECT, TENANT, Site, site_of
from ops.config import DataDir
from ops.daemon import start_detached, stop_stack
from ops.errors import OpsError
from ops.options import Limits, UpOptions
from ops.process import PACKAGE_ROOT
from placet import Placet, Published

# One agent asks for all of it: what is measured is the gateway and not its rate limit.
UNLIMITED = 100_000_000
POLICY = PACKAGE_ROOT / "policies" / "default.yaml"
# Every proposal is checked against it, as a tool's real one would be.
ARGUMENTS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 4096},
        "call": {"type": ["string", "integer"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}
TOOLS: tuple[Mapping[str, Any], ...] = (
    {"name": "read_file", "annotations": {"readOnlyHint": True}, "inputSchema": ARGUMENTS},
    {"name": "write_file", "annotations": {"readOnlyHint": False}, "inputSchema": ARGUMENTS},
)


@dataclass(frozen=True, slots=True)
class Bench:
    """A running stack, how much to measure, and who hears how far it is."""

    site: Site
    is_quick: bool
    tell: Callable[[str], None]

    def size(self, full: int, quick: int) -> int:
        """How many of something."""
        return quick if self.is_quick else full

    def load(self, function: str, told: str, **job: Any) -> dict[str, Any]:
        """Run a load (`module:function`) in a process of its own; its answer."""
        self.tell(told)
        return run_load(function, {"site": asdict(self.site), **job})


@contextmanager
def opened_bench(tell: Callable[[str], None], *, is_quick: bool, **options: Any) -> Iterator[Bench]:
    """A fresh stack with two tools and the default policy; stopped and removed at the end.

    Args:
        tell: hears how far it is.
        is_quick: with small counts.
        options: of the stack, as `UpOptions` names them.

    Raises:
        OpsError: it could not be started, or takes no definitions.
    """
    root = Path(tempfile.mkdtemp(prefix="placet-bench-"))
    tell("starting a stack")
    try:
        start_detached(replace(_options(root), **options))
        try:
            site = site_of(DataDir(root), partial(_token, DataDir(root)))
            publish(site)
            yield Bench(site, is_quick, tell)
        finally:
            stop_stack(DataDir(root))
    finally:
        shutil.rmtree(root)


def _token(directory: DataDir, subject: str, role: str) -> str:
    agent = AGENT if role == "agent" else None
    return issue(directory.keys, subject, [role], TENANT, PROJECT, agent)


def publish(site: Site, policy: Path = POLICY) -> None:
    """Publish two tools, one that reads and one that writes, and a policy that allows the one and holds the other.

    Raises:
        OpsError: the stack does not adopt them.
    """
    with Placet(site.url, token=site.operator_token) as operator:
        for tool in TOOLS:
            _check(operator.tools.put(tool["name"], tool))
        _check(operator.policies.publish("default", policy.read_text(encoding="utf-8")))


def _check(published: Published) -> None:
    if missing := published.raw.get("pending"):
        raise OpsError(f"Partitions {missing} have not adopted {published.name}: read the decider's log.")


def _options(root: Path) -> UpOptions:
    return UpOptions(root, port=0, limits=Limits(UNLIMITED, UNLIMITED, UNLIMITED))
