"""`placet export`: the facts as files for analysts, by tenant and day; each run adds what is new."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from host.errors import OperatorError, SettingsRefused
from host.garbage_collector import collect_seldom
from log.shares import RECORDS_WORTH_IT, shares
from ops.commands.common import (
    DataDirOption,
    JsonOption,
    errors_as_exit_codes,
    print_json,
    print_line,
    say_line,
)
from ops.config import DEFAULT_DATA_DIR, DataDir, load_config
from ops.errors import OpsError, UsageError
from ops.export.errors import NewerVersionError
from ops.export.folder import Folder
from ops.export.layout import STAR, Format
from ops.export.parts import new_part_of
from ops.export.reading import Stretch, Work
from ops.export.run import Growth, Outcome, Told, export, plan
from ops.export.star import write_star
from ops.export.workers import Job, export_by
from ops.kafka.acl import READER
from ops.log_workers import PROCESSES_MAX, default_processes, opened_log
from ops.progress import reading_the_log
from ops.stack_log import reached, read_signatures
from projections.queries.views import open_views
from schemas.event_signatures import LogSignatures

# As others are told while it holds the directory of a stopped stack.
NAME = "placet export"
DEFAULT_OUT = Path("placet-export")
# What is told of single records.
LISTS = ("unread", "newer")


def export_command(
    out: Annotated[
        Path, typer.Option(help="The folder; an existing export is continued.", file_okay=False)
    ] = DEFAULT_OUT,
    form: Annotated[
        Format | None, typer.Option("--format", help="By default that of the folder; of a new one parquet.")
    ] = None,
    star: Annotated[
        bool,
        typer.Option(
            "--star", help="Also write the tables of the views that analysts join, as they are now."
        ),
    ] = False,
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified", help="Do not verify signatures: for a log to which only deciders can write."
        ),
    ] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help=f"By default one for each core, at most {PROCESSES_MAX}.")
    ] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bootstrap_servers: Annotated[
        str | None, typer.Option(envvar="PLACET_BOOTSTRAP_SERVERS", help="By default the stack's.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Export the facts as Parquet or JSON lines, by tenant and day; each run adds what is new."""
    with errors_as_exit_codes():
        directory = DataDir(data_dir.expanduser().absolute())
        began = time.monotonic()
        with reached(directory, load_config(directory.config), bootstrap_servers, say_line, NAME) as config:
            settings = config.settings_for("export", READER)
            signatures = None if unverified else read_signatures(settings)
            folder = Folder(out.expanduser().absolute(), form, verified=signatures is not None)
            if folder.is_new:
                say_line(f"A new export begins in {folder.root}; --out continues an earlier one elsewhere")
            try:
                # Asked for before anything is read.
                new_part_of(folder.state.format)
                with reading_the_log(show=not json) as told:
                    outcome = _export(settings, folder, signatures, processes or default_processes(), told)
                tables = _star(settings, folder) if star else {}
            finally:
                folder.close()
        _tell(folder, outcome, tables, time.monotonic() - began, as_json=json)
        if outcome.counts.newer:
            raise NewerVersionError(outcome.counts.newer)


def _export(
    settings: dict[str, str], folder: Folder, signatures: LogSignatures | None, processes: int, told: Told
) -> Outcome:
    # Rows live until they are written: the collector would go through them again and again.
    collect_seldom()
    try:
        stretches = asyncio.run(_planned(settings, folder))
        growth = Growth(folder, sum(stretch.offsets for stretch in stretches), told)
        folder.complete()
        if growth.total:
            work = Work(folder.stage(), folder.state.format, signatures)
            _grow(settings, work, stretches, growth, processes)
    except OpsError:
        raise
    except SettingsRefused as error:
        raise UsageError(str(error)) from error
    except OperatorError as error:
        raise OpsError(str(error)) from error
    folder.finish()
    return growth.outcome


def _grow(
    settings: dict[str, str], work: Work, stretches: list[Stretch], growth: Growth, processes: int
) -> None:
    if processes == 1 or growth.total < RECORDS_WORTH_IT:
        asyncio.run(_read(settings, work, stretches, growth))
    else:
        divided = shares(stretches, processes, lambda stretch: stretch.offsets)
        export_by([Job(settings, work, share) for share in divided], growth)


async def _planned(settings: dict[str, str], folder: Folder) -> list[Stretch]:
    async with opened_log(settings) as log:
        return await plan(log, folder)


async def _read(settings: dict[str, str], work: Work, stretches: list[Stretch], growth: Growth) -> None:
    async with opened_log(settings) as log:
        await export(log, work, stretches, growth)


def _star(settings: dict[str, str], folder: Folder) -> dict[str, int]:
    """Write the tables of the views; how many rows each has."""
    now_ms = int(time.time() * 1000)
    try:
        views = open_views(settings["database_url"], connections=1)
        try:
            write = partial(write_star, root=folder.root, form=folder.state.format, now_ms=now_ms)
            return views.read_now(write)[0]
        finally:
            views.close()
    except OpsError:
        raise
    except OperatorError as error:
        raise OpsError(str(error)) from error


def _tell(folder: Folder, outcome: Outcome, tables: dict[str, int], seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json(summary(folder, outcome, seconds) | {"star": tables})
        return
    counts = outcome.counts
    rate = counts.records / seconds if seconds else 0.0
    print_line(f"{counts.records:,} records read in {seconds:.1f} s ({rate:,.0f}/s)")
    print_line(f"{counts.rows:,} events written to {outcome.files:,} files in {folder.root}")
    print_line(f"{counts.about_the_log:,} records are about the log itself, and in no file")
    if counts.refused:
        print_line(f"{counts.refused:,} records do not count by the term rule, and are in no file")
    if counts.unreadable:
        print_line(f"{counts.unreadable:,} records cannot be read, and are in no file:", err=True)
    for one in counts.unread:
        print_line(
            f"  {one.topic}/{one.partition}@{one.offset} {one.type}: {one.reason}: {one.detail}", err=True
        )
    if tables:
        rows = sum(tables.values())
        print_line(f"{rows:,} rows written to {len(tables)} tables in {folder.root / STAR}")
    for path in folder.foreign:
        print_line(f"{path} is not of an export, and was left there", err=True)


def summary(folder: Folder, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """What `--json` prints."""
    totals, state = folder.state.totals, folder.state
    return {
        "out": str(folder.root),
        "format": state.format.value,
        "verified": state.verified,
        "files": outcome.files,
        "seconds": round(seconds, 3),
        **{name: value for name, value in asdict(outcome.counts).items() if name not in LISTS},
        **{name: [one._asdict() for one in getattr(outcome.counts, name)] for name in LISTS},
        "foreign": [str(path) for path in folder.foreign],
        "total": {name: getattr(totals, name) for name in totals.__struct_fields__},
    }
