"""`placet bench`: measures, prints a table for each benchmark, and leaves the figures in `.placet/bench.json`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from ops.bench import machine
from ops.bench.against.command import Asked, asked, run
from ops.bench.bench import Bench, opened_bench
from ops.bench.result import Result
from ops.bench.step_progress import progress_shown
from ops.bench.table import table
from ops.commands.common import JsonOption, errors_as_exit_codes, print_json, print_line
from ops.errors import UsageError
from ops.files import write_json
from placet.cli.session import console

RESULT = Path(".placet") / "bench.json"
NAMES = (
    "floor",
    "gate",
    "authority",
    "holds",
    "history",
    "recovery",
    "rebuild",
    "sockets",
    "questions",
    "chats",
    "tracing",
    "audit",
    "trust",
    "backtest",
)
ROUNDS = 5
Measure: TypeAlias = Callable[[Bench], Result]


def bench(
    name: Annotated[str | None, typer.Argument(help=f"One of {', '.join(NAMES)}; by default all.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small counts: to test that it works, not how fast.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF", help="Compare the working tree with this commit of its repository instead."
        ),
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(help="With --against: a scenario to compare; may be repeated; by default all."),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="With --against: the number of rounds of each side.")
    ] = ROUNDS,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY>=X[x]", help="With --against: exit 1 unless this holds; with x, for the ratio."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure what Placet costs against what Kafka alone costs, on this machine and in the same run.

    Each benchmark starts a stack of its own in a temporary directory and stops it. With --against, two stacks, of the
    working tree and of another commit, are measured in turns instead.
    """
    with errors_as_exit_codes():
        if against is not None:
            _compare(_asked(name, against, scenario or (), rounds, require or (), is_quick=quick), json=json)
        else:
            _check_alone(scenario, require)
            _measure(_chosen(name), is_quick=quick, json=json)


def _asked(
    name: str | None,
    ref: str,
    scenarios: Sequence[str],
    rounds: int,
    require: Sequence[str],
    *,
    is_quick: bool,
) -> Asked:
    if name is not None:
        raise UsageError(f"--against compares scenarios: write --scenario {name} if it is one of them.")
    return asked(ref, scenarios, rounds, require, is_quick=is_quick)


def _check_alone(scenario: Sequence[str] | None, require: Sequence[str] | None) -> None:
    if scenario or require:
        raise UsageError("--scenario and --require belong to a comparison: name a commit with --against.")


def _compare(what: Asked, *, json: bool) -> None:
    if code := run(what, json=json):
        raise typer.Exit(code)


def _measure(names: tuple[str, ...], *, is_quick: bool, json: bool) -> None:
    machine.allow_open_files()
    found: list[tuple[Result, float]] = []
    # What was measured is kept and shown at once: a later benchmark may fail or be stopped.
    for result in _results(names, is_quick=is_quick, show=not json):
        found.append(result)
        report = _report(found, names, is_quick=is_quick)
        write_json(RESULT, report)
        if not json:
            _print(result[0])
    if json:
        print_json(report)
    else:
        print_line(f"All figures, and what they were measured on: {RESULT}")


def _print(result: Result) -> None:
    console().print(table(result))
    if result.note:
        print_line(result.note)


def _chosen(name: str | None) -> tuple[str, ...]:
    if name is not None and name not in NAMES:
        raise UsageError(f"There is no benchmark {name}: choose one of {', '.join(NAMES)}.")
    return NAMES if name is None else (name,)


def _results(names: tuple[str, ...], *, is_quick: bool, show: bool) -> Iterator[tuple[Result, float]]:
    """Each result as soon as it is there, with the load average (1 minute) before its benchmark."""
    for number, name in enumerate(names, 1):
        load_average = os.getloadavg()[0]
        title = f"{name} ({number} of {len(names)})"
        module = import_module(f"ops.bench.{name}")
        measure: Measure = module.measure
        options: Mapping[str, Any] = getattr(module, "STACK", {})
        with (
            progress_shown(title, show=show) as report,
            opened_bench(report, is_quick=is_quick, **options) as opened,
        ):
            result = measure(opened)
        yield result, load_average


def _report(
    found: list[tuple[Result, float]], names: tuple[str, ...], *, is_quick: bool
) -> Mapping[str, Any]:
    return {
        "ok": len(found) == len(names) and all(result.is_ok for result, _ in found),
        "missing": names[len(found) :],
        "quick": is_quick,
        "machine": machine.facts(),
        "results": [{**result.as_json(), "load_average": load} for result, load in found],
    }
