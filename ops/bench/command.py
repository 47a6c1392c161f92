"""`placet bench`: measures, prints the table, and leaves the figures in `.placet/bench.json`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from ops.bench import machine
from ops.bench.bench import Bench, opened_bench
from ops.bench.result import Result
from ops.bench.table import table
from ops.commands.common import JsonOption, errors_as_exit_codes, print_json
from ops.errors import UsageError
from ops.files import write_json

RESULT = Path(".placet") / "bench.json"
NAMES = ("floor", "gate", "authority", "holds", "history", "recovery", "rebuild", "sockets", "audit")
Measure: TypeAlias = Callable[[Bench], Result]


def bench(
    name: Annotated[str | None, typer.Argument(help=f"One of {', '.join(NAMES)}; all when left out.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small counts: to see that it works, not how fast.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure what Placet costs against what Kafka alone costs, on this machine and in the same run.

    Each benchmark starts a stack of its own in a temporary directory and stops it.
    """
    with errors_as_exit_codes():
        found = _run(_chosen(name), is_quick=quick, show=not json)
    report = _report(found, is_quick=quick)
    write_json(RESULT, report)
    if json:
        print_json(report)
        return
    console = Console()
    console.print(table(result for result, _ in found))
    for result, _ in found:
        if result.note:
            console.print(f"{result.name}: {result.note}")
    console.print(f"All figures, and what they were measured on: {RESULT}")


def _chosen(name: str | None) -> tuple[str, ...]:
    if name is not None and name not in NAMES:
        raise UsageError(f"There is no benchmark {name}: choose one of {', '.join(NAMES)}.")
    return NAMES if name is None else (name,)


def _run(names: tuple[str, ...], *, is_quick: bool, show: bool) -> list[tuple[Result, float]]:
    """Each result, with the load average (1 minute) before its benchmark."""
    machine.allow_open_files()
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    found = []
    console = Console(stderr=True)
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not show, transient=True
    ) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:

            def tell(text: str, name: str = name) -> None:
                progress.update(task, description=f"{name}: {text}")

            load_average = os.getloadavg()[0]
            with opened_bench(tell, is_quick=is_quick) as opened:
                measure: Measure = import_module(f"ops.bench.{name}").measure
                found.append((measure(opened), load_average))
            progress.advance(task)
    return found


def _report(found: list[tuple[Result, float]], *, is_quick: bool) -> Mapping[str, Any]:
    return {
        "ok": all(result.is_ok for result, _ in found),
        "quick": is_quick,
        "machine": machine.facts(),
        "results": [{**result.as_json(), "load_average": load} for result, load in found],
    }
