"""`placet replay`: rebuild the views from the log beside the live ones, compare, swap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer
from rich.table import Table

from host.errors import EXIT_UNREACHABLE, OperatorError
from host.garbage_collector import collect_seldom
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower
from ops.commands.common import DataDirOption, JsonOption, print_json, print_line, say_line, table
from ops.config import DEFAULT_DATA_DIR, DataDir, StackConfig, load_config
from ops.errors import OpsError
from ops.file_modes import hide_secrets
from ops.kafka.acl import READER
from ops.progress import reading_the_log
from ops.stack_log import reached
from ops.view_upgrade import DATABASE_URL, check_url_given
from placet.cli import safe
from placet.cli.session import console
from projections.audit.settings import signed_heads
from projections.main import kafka_address
from projections.rebuild import Outcome, Plan, rebuild
from projections.rebuild_workers import with_processes
from schemas.event_signatures import load_signatures
from schemas.topics import Topics

# What may hold a password, and the variable that says the same.
SECRET_OPTIONS = {"--database-url": "DATABASE_URL", "--into": "PLACET_REPLAY_INTO"}
INTO = "--into (PLACET_REPLAY_INTO)"
# As others are told while it holds the directory of a stopped stack.
NAME = "placet replay"
EXIT_DIFFERS = 1


def replay(
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    into: Annotated[
        str | None,
        typer.Option(
            envvar="PLACET_REPLAY_INTO",
            help="Database URL to fill instead of the live view; it is compared too.",
        ),
    ] = None,
    database_url: Annotated[
        str | None, typer.Option(envvar="DATABASE_URL", help="The live view; by default the stack's.")
    ] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option(envvar="PLACET_BOOTSTRAP_SERVERS", help="By default the stack's.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="By default one for each core.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Swap in the rebuilt view even if it differs.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Rebuild the views from offset 0 beside the live ones, compare row by row, and swap them in."""
    hide_secrets(SECRET_OPTIONS)
    try:
        check_url_given(into, INTO)
        check_url_given(database_url, DATABASE_URL)
        directory = DataDir(data_dir.expanduser().absolute())
        with reached(directory, load_config(directory.config), bootstrap_servers, say_line, NAME) as config:
            if database_url:
                config = replace(config, database_url=database_url)
            settings = config.settings_for("replay", READER)
            live_url, heads = settings["database_url"], signed_heads(settings)
            plan = Plan(live_url, into or live_url, force, heads, load_signatures(settings))
            outcome = _run(kafka_address(settings), _topics(config), plan, processes, show=not json)
    except OpsError as error:
        say_line(str(error))
        raise typer.Exit(error.exit_code) from error
    except OperatorError as error:
        say_line(str(error))
        raise typer.Exit(EXIT_UNREACHABLE) from error
    if json:
        print_json(as_json(outcome))
    else:
        _print(outcome, plan)
    if outcome.refused or not _is_as_wanted(outcome, plan):
        raise typer.Exit(EXIT_DIFFERS)


def _is_as_wanted(outcome: Outcome, plan: Plan) -> bool:
    """Whether what was to be compared is equal; with `--into`, which leaves the live view, that is the purpose."""
    if outcome.comparison is None:
        return plan.live_url == plan.target_url
    return outcome.comparison.is_equal


def as_json(outcome: Outcome) -> dict[str, Any]:
    """The outcome as the command prints it with `--json`."""
    comparison = outcome.comparison
    return {
        "records": outcome.records,
        "seconds": round(outcome.read_s, 3),
        "equal": None if comparison is None else comparison.is_equal,
        "offsets": None if comparison is None else comparison.offsets,
        "tables": [] if comparison is None else [asdict(table) for table in comparison.tables],
        "swapped": not outcome.refused,
        "refused": outcome.refused,
        "note": outcome.note,
    }


def _topics(config: StackConfig) -> Topics:
    return Topics(config.topic_prefix)


def _run(address: KafkaSettings, topics: Topics, plan: Plan, processes: int | None, *, show: bool) -> Outcome:
    collect_seldom()
    with reading_the_log(show=show) as told:
        return asyncio.run(_rebuild(address, topics, plan, processes, told))


async def _rebuild(
    address: KafkaSettings,
    topics: Topics,
    plan: Plan,
    processes: int | None,
    told: Callable[[int, int], None],
) -> Outcome:
    tail = Follower(address, BULK)
    await tail.open()
    try:
        bulk = with_processes(address, topics, processes, plan.signatures)
        return await rebuild(plan, tail, topics, told, bulk)
    finally:
        await tail.close()


def _print(outcome: Outcome, plan: Plan) -> None:
    rate = outcome.records / outcome.read_s if outcome.read_s else 0.0
    print_line(f"{outcome.records:,} records in {outcome.read_s:.1f} s ({rate:,.0f}/s)")
    if outcome.comparison is None:
        print_line(f"not compared: {outcome.note}")
    else:
        console().print(_table(outcome))
    if outcome.refused:
        print_line(f"not swapped: {outcome.refused}")
    else:
        print_line("swapped in" if plan.live_url == plan.target_url else "filled")


def _table(outcome: Outcome) -> Table:
    made = table("table", "rows", "sha-256", "differing", "first differences")
    for found in [] if outcome.comparison is None else outcome.comparison.tables:
        first = "\n".join(f"{row.key} {row.problem} {' '.join(row.columns)}" for row in found.differences)
        shown = safe.text(first, lines=True)
        made.add_row(found.name, f"{found.rows:,}", found.digest[:12], f"{found.differing:,}", shown)
    return made


if __name__ == "__main__":
    typer.run(replay)
