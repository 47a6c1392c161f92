"""What is compared: each scenario's sizes, and the names of its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ops.bench.against.side import Side
from ops.bench.rebuild import replay

LOADS = "ops.bench.against.loads"


class Named(NamedTuple):
    """A figure's name in a table, and its unit."""

    name: str
    unit: str


class Size(NamedTuple):
    """How much of something, in a full run and in one that only shows that it works."""

    full: int
    quick: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing to measure on both sides.

    Attributes:
        name: as `--scenario` names it.
        told: what is done, for who waits.
        measure: one turn on one side; figures by key.
        figures: the figures that every side has, by key. What a side adds is named by its key alone.
        prepare: what has to be there before the first turn, made on each side.
    """

    name: str
    told: str
    measure: Callable[[Side, bool], Mapping[str, float]]
    figures: Mapping[str, Named]
    prepare: Callable[[Side, bool], object] | None = None

    def named(self, key: str) -> Named:
        """The name and unit of a figure; a part's processor time has the unit of the whole stack's."""
        if key in self.figures:
            return self.figures[key]
        part = key.removeprefix(f"{self.name}-cpu-")
        return Named(f"CPU of {part}", self.figures[f"{self.name}-cpu"].unit)


@dataclass(frozen=True, slots=True)
class Load:
    """A measure that is a load of the working tree in a process of its own."""

    function: str
    sizes: Mapping[str, Size] = field(default_factory=dict)

    def __call__(self, side: Side, is_quick: bool) -> dict[str, Any]:
        """Run it on a side."""
        job = {name: size.quick if is_quick else size.full for name, size in self.sizes.items()}
        return side.load(f"{LOADS}:{self.function}", **job)


def rebuilt(side: Side, is_quick: bool) -> Mapping[str, float]:
    """One `placet replay` of a side's own version, equal to its live views."""
    told = replay(side.tree.command()[0], side.site, side.tree.environ)
    return {"rebuild-rate": told["records"] / told["seconds"], "rebuild-events": told["records"]}


def _rates(name: str, rate: Named, unit: str) -> dict[str, Named]:
    return {f"{name}-rate": rate, **_cpu_of_load(name, unit)}


def _cpu_of_load(name: str, unit: str) -> dict[str, Named]:
    return {**_cpu(name, unit), f"{name}-load-cpu": Named("CPU of the load itself", unit)}


def _cpu(name: str, unit: str) -> dict[str, Named]:
    return {
        f"{name}-cpu": Named("CPU of all processes beside the broker", unit),
        f"{name}-broker-cpu": Named("CPU of the broker", unit),
    }


SCENARIOS = (
    Scenario(
        "gate",
        "calls proposed, allowed, consumed and reported, 64 in flight",
        Load("gate", {"warm": Size(1_000, 64), "calls": Size(4_000, 200)}),
        _rates("gate", Named("gated calls, 64 in flight", "calls/s"), "ms/call"),
    ),
    Scenario(
        "holds",
        "calls proposed, held, approved, consumed and reported, 64 in flight",
        Load("holds", {"warm": Size(300, 32), "cycles": Size(1_200, 64)}),
        _rates("holds", Named("hold cycles, 64 in flight", "cycles/s"), "ms/cycle"),
    ),
    Scenario(
        "latency",
        "one call at a time, in turns with the broker's two hops",
        Load("latency", {"turns": Size(12, 1), "alone": Size(1_000, 20)}),
        {
            "hops-ms": Named("two raw hops, p50", "ms"),
            "verdict-ms": Named("propose → verdict, WebSocket, p50", "ms"),
            "verdict-hops": Named("propose → verdict, WebSocket, p50", "× hops"),
            "rest-verdict-ms": Named("propose → verdict, REST, p50", "ms"),
            "rest-verdict-hops": Named("propose → verdict, REST, p50", "× hops"),
            "may-run-ms": Named("allowed call until it may run, p50", "ms"),
            **_cpu_of_load("latency", "ms/verdict"),
        },
    ),
    Scenario(
        "idle",
        "nothing",
        Load("idle", {"seconds": Size(20, 1)}),
        _cpu("idle", "% of a core"),
    ),
    Scenario(
        "rebuild",
        "placet replay",
        rebuilt,
        {
            "rebuild-rate": Named("views rebuilt from the log, and equal", "events/s"),
            "rebuild-events": Named("events in the log", "events"),
        },
        Load("fill", {"events": Size(200_000, 400)}),
    ),
)
