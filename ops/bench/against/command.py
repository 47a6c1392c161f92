"""`placet bench --against REF`: both stacks beside each other, scenario by scenario, and the report."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.bench import machine
from ops.bench.against.checkout import SHORT, SetUp, checked_out, set_up
from ops.bench.against.ending import ended_by_signals
from ops.bench.against.pair import Pair
from ops.bench.against.required import Required, parsed
from ops.bench.against.revision import described, resolve, working_tree
from ops.bench.against.rounds import Sides, Tell, compared
from ops.bench.against.scenarios import SCENARIOS, Scenario
from ops.bench.against.side import ready, spawned
from ops.bench.against.table import table
from ops.bench.step_progress import progress_shown
from ops.commands.common import print_json, print_line
from ops.errors import UsageError
from ops.files import write_json
from ops.kafka.jars import cache_dir
from ops.process import PACKAGE_ROOT
from placet.cli.session import console

RESULT = Path(".placet") / "bench-against.json"
CACHE = "against"
EXIT_SHORT = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What a comparison was asked for, checked.

    Attributes:
        ref: the other commit, as it was named.
        commit: its full name.
        scenarios: what to measure.
        rounds: how many turns each side has in a scenario.
        required: what is required of the figures.
        is_quick: whether small counts do.
    """

    ref: str
    commit: str
    scenarios: tuple[Scenario, ...]
    rounds: int
    required: tuple[Required, ...]
    is_quick: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A scenario's figures, and the load average (1 minute) before it."""

    scenario: Scenario
    pairs: tuple[Pair, ...]
    load_average: float


def asked(ref: str, names: Sequence[str], rounds: int, required: Sequence[str], *, is_quick: bool) -> Asked:
    """Check what was asked for, before anything is started.

    Raises:
        UsageError: there is no such commit, scenario or figure.
    """
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"There is no scenario {unknown[0]}: choose one of {', '.join(known)}.")
    chosen = tuple(scenario for name, scenario in known.items() if not names or name in names)
    keys = [key for scenario in chosen for key in scenario.figures]
    demands = tuple(parsed(text, keys) for text in required)
    return Asked(ref, resolve(PACKAGE_ROOT, ref), chosen, rounds, demands, is_quick)


def run(what: Asked, *, json: bool) -> int:
    """Compare, print and keep the figures.

    Returns:
        The exit code: 1 where a requirement is not met.

    Raises:
        OpsError: a side could not be started or measured; what was measured before is kept.
    """
    machine.allow_open_files()
    found: list[Compared] = []
    with ended_by_signals(), closing(results(what, show=not json)) as each:
        # What was measured is kept and shown at once: a later scenario may fail or be stopped.
        for one in each:
            found.append(one)
            report = _report(what, found)
            write_json(RESULT, report)
            if not json:
                _print(what, one)
    if json:
        print_json(report)
    else:
        print_line(f"All figures, and what they were measured on: {RESULT}")
    return 0 if report["ok"] else EXIT_SHORT


def results(what: Asked, *, show: bool, make: SetUp = set_up) -> Generator[Compared, None, None]:
    """Each scenario's figures as soon as they are there."""
    with ExitStack() as opened:
        with progress_shown("start", show=show) as report:
            sides = _opened(opened, what.commit, make, report)
        for number, scenario in enumerate(what.scenarios, 1):
            load_average = os.getloadavg()[0]
            title = f"{scenario.name} ({number} of {len(what.scenarios)})"
            with progress_shown(title, show=show) as report_turn:
                pairs = compared(scenario, sides, what.rounds, report_turn, is_quick=what.is_quick)
            yield Compared(scenario, pairs, load_average)


def _opened(opened: ExitStack, commit: str, make: SetUp, report: Tell) -> Sides:
    """Both stacks, which start at the same time and stay beside each other."""
    report(f"checking out {commit[:SHORT]} and setting it up")
    theirs = opened.enter_context(checked_out(PACKAGE_ROOT, commit, cache_dir() / CACHE, make))
    report("both stacks")
    trees = working_tree(), theirs
    running = [opened.enter_context(spawned(tree)) for tree in trees]
    # The same policy for both: a later version reads what an earlier one does, and not the other way round.
    policy = theirs.root / "policies" / "default.yaml"
    one, other = (ready(tree, *started, policy) for tree, started in zip(trees, running, strict=True))
    return one, other


def _print(what: Asked, one: Compared) -> None:
    heads = "working tree", what.commit[:SHORT]
    console().print(table(one.scenario.name, heads, one.pairs, _by_key(what.required)))


def _by_key(required: Sequence[Required]) -> dict[str, list[Required]]:
    found: dict[str, list[Required]] = {}
    for one in required:
        found.setdefault(one.key, []).append(one)
    return found


def _report(what: Asked, found: Sequence[Compared]) -> Mapping[str, Any]:
    pairs = {pair.key: pair for one in found for pair in one.pairs}
    required = [
        {"required": one.text, "ok": one.key in pairs and one.is_met(pairs[one.key])} for one in what.required
    ]
    missing = [scenario.name for scenario in what.scenarios[len(found) :]]
    return {
        "ok": not missing and all(one["ok"] for one in required),
        "missing": missing,
        "quick": what.is_quick,
        "rounds": what.rounds,
        "ours": described(PACKAGE_ROOT),
        "theirs": {"ref": what.ref, "commit": what.commit},
        "machine": machine.facts(),
        "required": required,
        "scenarios": [
            {
                "name": one.scenario.name,
                "load_average": one.load_average,
                "figures": [pair.as_json() for pair in one.pairs],
            }
            for one in found
        ],
    }
