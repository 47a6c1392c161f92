"""`placet policy backtest`: replay history against a candidate policy."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from host.errors import EXIT_USAGE, OperatorError, SettingsRefused
from host.garbage_collector import collect_seldom
from log.shares import RECORDS_WORTH_IT
from ops.backtest.beside import warnings_beside
from ops.backtest.found import Found
from ops.backtest.history import Candidate
from ops.backtest.html import check_place, write_report
from ops.backtest.naming import named_of
from ops.backtest.partition import Window
from ops.backtest.report import Report
from ops.backtest.run import Plan, Question, Told, planned, replayed_all
from ops.backtest.telling import json_of, tell
from ops.backtest.workers import backtest_by
from ops.commands.common import (
    DataDirOption,
    JsonOption,
    errors_as_exit_codes,
    print_json,
    say_line,
)
from ops.commands.policy import PolicyFile, document_in
from ops.config import DEFAULT_DATA_DIR, DataDir, load_config
from ops.errors import OpsError, UsageError
from ops.kafka.acl import READER
from ops.log_workers import PROCESSES_MAX, default_processes, opened_log
from ops.progress import reading_the_log
from ops.stack_log import reached, read_signatures
from placet.cli import policy_warnings
from placet.cli.times import FORMS, typed_time
from placet.parsing import parse_time
from schemas.policy_problems import PolicyRefused, Problem
from schemas.trust_score import IN_FORCE, TrustFunction

# As others are told while it holds the directory of a stopped stack.
NAME = "placet policy backtest"
# Calls that people were against would pass: no other end of the command has this code.
EXIT_OVERRULED = 4
# Something could not be read or judged, so that such calls may be missing.
EXIT_UNJUDGED = 5

NamedOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROJECT/EXECUTION/CALL",
        help="A call that may pass although people were against it; may be repeated.",
    ),
]
AcceptUnjudgedOption = Annotated[
    bool,
    typer.Option(
        "--accept-unjudged",
        help="End with 0 also if something cannot be read or judged, or nothing is by this policy.",
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Compare verdicts from this time on (RFC 3339, 24h, 7d)."),
]
UntilOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Compare verdicts before this time (RFC 3339, 24h, 7d)."),
]
QuantileOption = Annotated[
    float | None, typer.Option(help="Try trust by this quantile of the posterior; 0.05 is in force.")
]
HalfLifeOption = Annotated[
    float | None,
    typer.Option(metavar="DAYS", help="Try trust whose facts lose half their weight in this time; 30."),
]
WindowOption = Annotated[
    int | None, typer.Option(metavar="DAYS", help="Try trust of which facts count this long; 180.")
]
UnverifiedOption = Annotated[
    bool,
    typer.Option(
        "--unverified", help="Do not verify signatures: for a log to which only deciders can write."
    ),
]


def backtest_command(
    file: PolicyFile,
    since: SinceOption = None,
    until: UntilOption = None,
    allow_named: NamedOption = None,
    accept_unjudged: AcceptUnjudgedOption = False,
    tenant: Annotated[str, typer.Option(help="The tenant for which it would be published.")] = "default",
    project: Annotated[
        str | None,
        typer.Option(
            help="The project for which it would be published, * for the whole tenant; by default where its name is."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report with tables and plots.", dir_okay=False),
    ] = None,
    trust_quantile: QuantileOption = None,
    trust_half_life: HalfLifeOption = None,
    trust_window: WindowOption = None,
    unverified: UnverifiedOption = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help=f"By default one for each core, at most {PROCESSES_MAX}.")
    ] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bootstrap_servers: Annotated[
        str | None, typer.Option(envvar="PLACET_BOOTSTRAP_SERVERS", help="By default the stack's.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Replay history against a policy file: which calls it would newly ask, allow or deny, and what people said.

    Exit code 4 if calls that people rejected, edited or took back would now pass and are not named by --allow-named;
    5 if some verdict or record cannot be read or judged, or none is judged by the policy; 2 if no verdict was judged.
    """
    with errors_as_exit_codes():
        window = _window(since, until)
        if html is not None:
            check_place(html)
        function = _function(trust_quantile, trust_half_life, trust_window)
        candidate = Candidate(document_in(file), tenant, project)
        directory, began = DataDir(data_dir.expanduser().absolute()), time.monotonic()
        with reached(directory, load_config(directory.config), bootstrap_servers, say_line, NAME) as config:
            settings = config.settings_for("backtest", READER)
            verified = None if unverified else read_signatures(settings)
            question = Question(candidate, window, verified, function)
            with reading_the_log(show=not json) as told:
                found, warnings = _replayed(settings, question, processes or default_processes(), told)
        named = _named(found, allow_named or ())
        took = time.monotonic() - began
        report = Report(candidate, window, found, named, took, accept_unjudged, function, warnings)
        _warn(file, warnings)
        _tell(report, html, as_json=json)
    if code := _code(report):
        raise typer.Exit(code)


def _code(report: Report) -> int:
    """The command's exit code; of several, that which weighs most."""
    if report.unnamed:
        return EXIT_OVERRULED
    doubts = [one for one in (report.doubt, report.idleness) if one]
    for doubt in doubts:
        say_line(doubt)
    if doubts and not report.accepts_unjudged:
        return EXIT_UNJUDGED
    if report.emptiness:
        say_line(report.emptiness)
        return EXIT_USAGE
    return 0


def _tell(report: Report, html: Path | None, *, as_json: bool) -> None:
    if html is not None:
        write_report(html, report)
    if as_json:
        print_json(json_of(report))
    else:
        tell(report)


def _warn(file: Path, warnings: Sequence[Problem]) -> None:
    for line in policy_warnings.lines([one.model_dump() for one in warnings]):
        say_line(f"{file}: warning: {line}")


def _named(found: Found, names: Sequence[str]) -> frozenset[str]:
    named, vain = named_of(found.overruled, names)
    for name in vain:
        say_line(f"--allow-named {name}: no call of this name would pass against people's word")
    return named


def _window(since: str | None, until: str | None) -> Window:
    window = Window(_ms(since, "--since"), _ms(until, "--until"))
    if window.since_ms is not None and window.since_ms > time.time() * 1000:
        raise UsageError(f"--since {since} is in the future: no verdict is of that time.")
    if window.is_empty:
        raise UsageError(f"--since {since} is not before --until {until}: no verdict is of that time.")
    return window


def _function(quantile: float | None, half_life: float | None, window: int | None) -> TrustFunction | None:
    """The trust function to try; None if no option asks for one."""
    given = {"quantile": quantile, "half_life_days": half_life, "window_days": window}
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not changed:
        return None
    function = IN_FORCE._replace(**changed)
    if not 0 < function.quantile < 1:
        raise UsageError(f"--trust-quantile {function.quantile:g}: it is above 0 and below 1.")
    if not 0 < function.half_life_days < math.inf:
        raise UsageError(f"--trust-half-life {function.half_life_days:g}: it is a number of days above 0.")
    if function.window_days < 1:
        raise UsageError(f"--trust-window {function.window_days}: it is at least one day.")
    return function


def _ms(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        return int(parse_time(typed_time(text)).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{option} {text}: it is not {FORMS}.") from error


def _replayed(
    settings: dict[str, str], question: Question, processes: int, told: Told
) -> tuple[Found, list[Problem]]:
    """What is found, and the warnings of the candidate beside what is published."""
    collect_seldom()
    try:
        plan = asyncio.run(_planned(settings, question))
        warnings = warnings_beside(plan.history, plan.question.candidate)
        # Another function scores by the facts of all partitions, which one process has to know.
        if processes == 1 or plan.records < RECORDS_WORTH_IT or question.function is not None:
            return asyncio.run(_replayed_here(settings, plan, told)), warnings
        return backtest_by(processes, settings, plan, told), warnings
    except OpsError:
        raise
    except PolicyRefused as error:
        raise UsageError(f"The policy cannot be published there: {error.in_full()}") from error
    except SettingsRefused as error:
        raise UsageError(str(error)) from error
    except OperatorError as error:
        raise OpsError(str(error)) from error


async def _planned(settings: dict[str, str], question: Question) -> Plan:
    async with opened_log(settings) as log:
        return await planned(log, question)


async def _replayed_here(settings: dict[str, str], plan: Plan, told: Told) -> Found:
    async with opened_log(settings) as log:
        return await replayed_all(log, plan, told)
