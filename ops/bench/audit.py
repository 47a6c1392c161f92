"""Audit: a trail fetched from a running stack and verified offline, and how long a proof takes to make.

Every execution is put on one partition, so that one tree holds nearly all of the leaves.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ops.bench.agent import READ, WRITE, run_id
from ops.bench.bench import Bench
from ops.bench.caught_up import until_projected
from ops.bench.load import TIMEOUT_S, BenchFailedError
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.seed import seed, until_held
from ops.bench.site import PROJECT, TENANT, Site
from placet import Placet
from placet.cli.fetching import Fetch
from projections.audit.trees import TreeKey
from projections.queries.moment import Moment
from projections.queries.proofs import index_of, place_of_entry, tiles_of, tree_size
from projections.queries.views import open_views
from schemas.topics import Topics

PROOFS = 300
HEAD_WITHIN_S = 60.0
VERIFY_S = Target(10)
PROOF_MS = Target(5)


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Make a log on one partition, wait for a head of it, fetch the trail, and make proofs."""
    site = Site(**job["site"])
    await seed(site, run_id(), job["executions"], {9: WRITE}, READ, partition=0)
    await until_held(site, job["executions"])
    await until_projected(site)
    return await asyncio.to_thread(_measured, site, Path(job["out"]))


def _measured(site: Site, out: Path) -> dict[str, Any]:
    with Placet(site.url, token=site.operator_token) as operator:
        events = [row.event_id for row in operator.audit().items]
        _until_covered(operator, events[-1], _leaves(site))
        began = time.perf_counter()
        fetched = Fetch(operator, out, lambda done, of: None).run()
        fetch_s = time.perf_counter() - began
        asked = [
            _timed_ms(partial(operator.fetch, f"/audit/{one}/proof")) for one in islice(cycle(events), PROOFS)
        ]
    made = asyncio.run(_made(site))
    return {
        "leaves": fetched["leaves"],
        "fetch_s": fetch_s,
        "asked": {str(percent): percentile(asked, percent) for percent in (50, 99)},
        "made": {str(percent): percentile(made["ms"], percent) for percent in (50, 99)},
        "tree": made["size"],
    }


async def _made(site: Site) -> dict[str, Any]:
    """Proofs of leaves all over the largest tree, from the views that the stack's gateway reads."""
    views = open_views(site.database_url, Topics(site.topic_prefix))
    tree = TreeKey(TENANT, "executions", 0)
    size, _ = await views.read(lambda now: tree_size(now, tree))
    rows, _ = await views.read(lambda now: _some_entries(now, PROOFS))
    found = []
    for event_id in rows:

        def proof(now: Moment, event_id: str = event_id) -> float:
            def make() -> None:
                place = place_of_entry(now, TENANT, PROJECT, event_id)
                assert place is not None
                index = index_of(now, place.tree, place.offset)
                assert index is not None
                tiles_of(now, place.tree).inclusion(index, size)

            return _timed_ms(make)

        found.append((await views.read(proof))[0])
    views.close()
    return {"ms": found, "size": size}


def _some_entries(now: Moment, count: int) -> list[str]:
    text = f"SELECT event_id FROM audit_entries WHERE project <> '' ORDER BY event_id LIMIT {count}"  # noqa: S608 – a number
    return [row[0] for row in now.execute(text, ())]


def _leaves(site: Site) -> int:
    async def asked() -> int:
        views = open_views(site.database_url, Topics(site.topic_prefix))
        size, _ = await views.read(lambda now: tree_size(now, TreeKey(TENANT, "executions", 0)))
        views.close()
        return size

    return asyncio.run(asked())


def _until_covered(operator: Placet, event_id: str, leaves: int) -> None:
    """Wait until a head covers the whole log."""
    give_up_at = time.monotonic() + HEAD_WITHIN_S
    while time.monotonic() < give_up_at:
        head = operator.fetch("/audit/head")["head"]
        if max(tree["size"] for tree in head["trees"]) >= leaves:
            operator.fetch(f"/audit/{event_id}/proof")
            return
        time.sleep(0.2)
    raise BenchFailedError(f"No head covered the log within {HEAD_WITHIN_S:.0f} s.")


def _timed_ms(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def measure(bench: Bench) -> Result:
    """Seconds that it takes to verify a trail offline, and milliseconds that it takes to make a proof."""
    with tempfile.TemporaryDirectory(prefix="placet-bench-audit-") as directory:
        out = Path(directory) / "trail"
        found = bench.load(
            "ops.bench.audit:load",
            "making a log, fetching its trail, proving",
            executions=bench.size(3_400, 60),
            out=str(out),
        )
        bench.tell("placet audit verify")
        began = time.perf_counter()
        report = _verify(out, bench.site.directory.keys / "audit.json")
        verify_s = time.perf_counter() - began
    if report["leaves"] != found["leaves"] or not report["verified"]:
        raise BenchFailedError(f"The trail is not verified: {report}")
    full = not bench.is_quick
    return Result(
        "audit",
        (
            Figure("placet audit verify, offline", verify_s, "s", target=VERIFY_S if full else None),
            Figure("events in the trail", found["leaves"], "events"),
            Figure("placet audit verify", found["leaves"] / verify_s, "events/s"),
            Figure("placet audit fetch", found["leaves"] / found["fetch_s"], "events/s"),
            Figure("leaves of the tree that proofs are made in", found["tree"], "leaves"),
            Figure(
                "making an inclusion proof, p50", found["made"]["50"], "ms", target=PROOF_MS if full else None
            ),
            Figure("making an inclusion proof, p99", found["made"]["99"], "ms"),
            Figure("GET proof, with the record read from Kafka, p50", found["asked"]["50"], "ms"),
            Figure("GET proof, p99", found["asked"]["99"], "ms"),
        ),
    )


def _verify(trail: Path, keys: Path) -> dict[str, Any]:
    placet = str(Path(sys.executable).with_name("placet"))
    command = [placet, "audit", "verify", str(trail), "--key", str(keys), "--json"]
    done = subprocess.run(  # noqa: S603 - the command is built here
        command, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode != 0:
        raise BenchFailedError(
            f"placet audit verify failed: {done.stderr.strip() or done.stdout.strip()[:500]}"
        )
    report: dict[str, Any] = json.loads(done.stdout)
    return report
