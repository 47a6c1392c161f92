"""`placet evaluate adaptive`: measures what adaptive approval saves and what it lets pass, beside three baselines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TimeRemainingColumn

from ops.commands.common import JsonOption, errors_as_exit_codes, print_json, print_line
from ops.config import DataDir
from ops.demo.stack import OwnStack
from ops.errors import UsageError
from ops.evaluation.arms import ARMS, BY_NAME
from ops.evaluation.charts import write_charts
from ops.evaluation.evaluation import Asked, Measured, evaluate, prepared
from ops.evaluation.lane import Lane
from ops.evaluation.result import problems, result_of
from ops.evaluation.rounds import SUITES
from ops.evaluation.saving import check_out, read_earlier, write_result
from ops.evaluation.tables import NOT_MEASURED, table
from ops.options import check_data_dir
from placet.cli.choices import completing
from placet.cli.progress import bar
from placet.cli.session import console

ROUNDS = 20
WORDS = {True: "met", False: "MISSED", None: NOT_MEASURED}
DataDirChoice = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="The stack's directory; one that runs there is used. By default a temporary one, removed at the end.",
    ),
]


class Reviewer(StrEnum):
    """Who decides the holds."""

    PERFECT = "perfect"
    ERRING = "erring"


def adaptive(
    out: Annotated[Path, typer.Option(help="The directory for the result, the table and the charts.")],
    rounds: Annotated[
        int, typer.Option(min=1, help="How often every task is done, clean and attacked.")
    ] = ROUNDS,
    seed: Annotated[int, typer.Option(help="Of the order, the values and the reviewer's errors.")] = 1,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help=f"One of {', '.join(SUITES)}; may be repeated; by default all.",
            autocompletion=completing(SUITES),
        ),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            help=f"One of {', '.join(BY_NAME)}; may be repeated; by default all.",
            autocompletion=completing(list(BY_NAME)),
        ),
    ] = None,
    reviewer: Annotated[
        Reviewer,
        typer.Option(help="One that knows what each task needs, or one that errs in 5 % of its words."),
    ] = Reviewer.PERFECT,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Only so many user tasks of each suite, spread over it.")
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Add to the result in --out: what is not measured again stays.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Put the result in the place of the one in --out.")
    ] = False,
    data_dir: DataDirChoice = None,
    json: JsonOption = False,
) -> None:
    """Measure adaptive approval on agentdojo's suites: interruptions saved, attacks held, attacks released.

    Every call is proposed by the client to a real stack, run on agentdojo's environment if it is released, and
    reported. Each arm has a project of its own on each suite. All figures are read from the log's events.
    """
    with errors_as_exit_codes():
        asked = Asked(
            rounds=rounds,
            seed=seed,
            suites=_chosen("suite", suite, SUITES),
            arms=tuple(BY_NAME[name] for name in _chosen("arm", arm, [one.name for one in ARMS])),
            reviewer=reviewer.value,
            tasks=tasks,
        )
        check_out(out, add=add, overwrite=overwrite)
        earlier = read_earlier(out, asked) if add else None
        found = result_of(asked, *_measured(asked, data_dir), earlier)
        write_result(out, found)
        write_charts(found, out)
    _show(found, out, as_json=json)
    if problems(found):
        raise typer.Exit(1)


def _chosen(what: str, names: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    for name in names or ():
        if name not in known:
            raise UsageError(f"There is no {what} {name}: choose of {', '.join(known)}.")
    return tuple(known) if not names else tuple(dict.fromkeys(names))


def _measured(asked: Asked, data_dir: Path | None) -> tuple[list[Measured], float]:
    with stack_of(data_dir) as (directory, url):
        print_line("Setting agentdojo's tasks up …", err=True)
        lanes = prepared(asked, directory)
        address = url()
        with _counting(lanes, asked.rounds) as on_call:
            return evaluate(address, lanes, asked.rounds, on_call)


@contextmanager
def _counting(lanes: Sequence[Lane], rounds: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, elsewhere a line for each twentieth; attackers' calls come in addition."""
    total = rounds * sum(lane.tasks.calls() for lane in lanes)
    step, done = max(total // 20, 1), 0
    with bar(TimeRemainingColumn(), show=True) as shown:
        calls = shown.add_task("Calls", total=total)

        def on_call() -> None:
            nonlocal done
            done += 1
            shown.update(calls, completed=done, total=max(done, total))
            if done % step == 0 and not shown.console.is_terminal:
                print_line(
                    f"{done} calls; the tasks need {total}, attackers' ones come in addition", err=True
                )

        yield on_call


@contextmanager
def stack_of(data_dir: Path | None) -> Iterator[tuple[DataDir, Callable[[], str]]]:
    """A directory, and a function that waits for its stack and returns the URL; a stack started here is stopped."""
    if data_dir is None:
        with (
            tempfile.TemporaryDirectory(prefix="placet-evaluation-") as fresh,
            stack_of(Path(fresh)) as opened,
        ):
            yield opened
        return
    directory = DataDir(data_dir.expanduser().absolute())
    check_data_dir(directory.root)
    stack = OwnStack(directory)
    try:
        yield directory, lambda: str(stack.wait_ready().url)
    finally:
        stack.stop()


def _show(found: Mapping[str, Any], out: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    console().print(table(found))
    for row in found["targets"]:
        print_line(f"{WORDS[row['met']]}: {row['target']}; measured: {row['measured']}")
    run = found["runs"][-1]
    print_line(f"{run['calls']} calls in {run['seconds']} s, {run['calls_per_second']} calls/s: {out}")
    for problem in problems(found):
        typer.secho(f"! {problem}", fg="red")
