"""`placet demo`: agents work on office tasks; you decide the holds, or with --auto the suites' ground truth does."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from ops.commands.common import JsonOption, errors_as_exit_codes, print_json, print_line
from ops.config import DataDir
from ops.demo.access import Access, with_one_token, with_own_tokens
from ops.demo.passage import Passage
from ops.demo.person import decide_here
from ops.demo.report import Outcome, report
from ops.demo.reviewer import review
from ops.demo.show import JOBS_AT_ONCE, show
from ops.demo.stack import OwnStack
from ops.demo.suites import SUITES, Job, Office, jobs
from ops.demo.table import table
from ops.errors import UsageError
from ops.files import write_json
from ops.options import check_data_dir
from placet.cli.session import Settings, console
from placet.config import checked_address

if TYPE_CHECKING:
    from rich.console import Console

RESULT = Path(".placet") / "demo.json"
TASKS_BY_HAND = 4
AGENTS = tuple(f"demo-{suite}" for suite in SUITES)


def demo(
    context: typer.Context,
    auto: Annotated[bool, typer.Option("--auto", help="Decide by the suites' ground truth.")] = False,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Number of user tasks; by default 4, with --auto all.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The stack's directory; by default a temporary one, removed at the end."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Let agents work on agentdojo's office tasks, with and without attacks; every call goes through Placet.

    To use a gateway that runs elsewhere: placet --url URL --token ADMIN_TOKEN demo.
    """
    most = tasks or (None if auto else TASKS_BY_HAND)
    settings = context.find_object(Settings) or Settings()
    with errors_as_exit_codes():
        outcomes = _show(settings, data_dir, most, auto)
    found = report(outcomes, "auto" if auto else "person", version("agentdojo"))
    write_json(RESULT, found)
    if json:
        print_json(found)
    else:
        _print(found, auto)
    if auto and not found["ok"]:
        raise typer.Exit(1)


def _show(settings: Settings, data_dir: Path | None, most: int | None, auto: bool) -> list[Outcome]:
    say = console(stderr=True)
    with Progress(console=say, transient=True) as progress, _placet(settings, data_dir) as opened:
        offices, prepared = _prepare(most, progress)
        starting = progress.add_task("Starting Placet", total=None)
        _log(say, "Waiting for Placet to be ready …")
        access = opened()
        progress.remove_task(starting)
        if not auto:
            progress.stop()
            _introduce(access, say)
            return show(access, offices, prepared, _tell, decide=decide_here, at_once=1)
        tell = counting(sum(len(job.truth) for job in prepared), progress, say)
        return show(access, offices, prepared, tell, decide=review, at_once=JOBS_AT_ONCE)


def counting(total: int, progress: Progress, say: Console) -> Callable[[Passage], None]:
    """Progress of the calls: a bar on a terminal, otherwise a line for each tenth of them."""
    calls, done = progress.add_task("Calls", total=total), count(1)
    each = max(total // 10, 1)

    def tell(passage: Passage) -> None:
        if passage.injected:
            return
        progress.advance(calls)
        if (number := next(done)) % each == 0:
            _log(say, f"{number} of the {total} calls that the tasks need")

    return tell


def _prepare(most: int | None, progress: Progress) -> tuple[list[Office], list[Job]]:
    """Open the suites and set the tasks up; this takes seconds, during which the stack starts."""
    reading = progress.add_task("Setting tasks up", total=None)
    _log(progress.console, "Setting agentdojo's tasks up …")
    offices = [Office(name) for name in SUITES]
    prepared = list(jobs(offices, most))
    progress.remove_task(reading)
    return offices, prepared


@contextmanager
def _placet(settings: Settings, data_dir: Path | None) -> Iterator[Callable[[], Access]]:
    """A function that waits for the gateway and gives access to it; a stack started for it stops at the end."""
    if settings.url is not None:
        checked_address("The address given by --url", settings.url)
        if not settings.token:
            raise UsageError("--url needs an admin's token: give it with --token.")
        access = with_one_token(settings.url, settings.token, AGENTS)
        yield lambda: access
        return
    with _directory(data_dir) as directory:
        stack = OwnStack(directory)
        try:
            yield lambda: with_own_tokens(str(stack.wait_ready().url), directory, AGENTS)
        finally:
            stack.stop()


@contextmanager
def _directory(given: Path | None) -> Iterator[DataDir]:
    if given is not None:
        directory = DataDir(given.expanduser().absolute())
        check_data_dir(directory.root)
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="placet-demo-") as fresh:
        yield DataDir(Path(fresh))


def _introduce(access: Access, say: Console) -> None:
    token = f'"$(cat {shlex.quote(str(access.reviewer_file))})"' if access.reviewer_file else "…"
    for line in (
        f"Placet is at {access.url}. The agents work one after the other; held calls wait for your decision, here",
        "or in another terminal:",
        f"  export PLACET_URL={shlex.quote(access.url)} PLACET_TOKEN={token}",
        "  placet inbox; placet approve ID; placet reject ID --feedback TEXT",
    ):
        print_line(line, err=True)


def _log(say: Console, line: str) -> None:
    """Print the progress if the output is not a terminal, which shows a bar instead."""
    if not say.is_terminal:
        say.print(line)


def _tell(passage: Passage) -> None:
    """Print one line for each call."""
    word = f"{passage.effect} → {passage.decision or 'policy'} → {passage.status}"
    print_line(f"  {passage.call.tool}: {word}")


def _print(found: Mapping[str, Any], auto: bool) -> None:
    console().print(table(found))
    for problem in found["problems"]:
        typer.secho(f"! {problem}", fg="red" if auto else "yellow")
    print_line(f"All figures, call by call: {RESULT}")
