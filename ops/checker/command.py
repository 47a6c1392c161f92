"""`placet audit-log`: hold a whole log, and clients' histories if there are any, against the invariants."""

from __future__ import annotations

import asyncio
import json as jsonlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from host.errors import SettingsRefused
from log.errors import LogError
from log.kafka.log import KafkaLog
from log.kafka.settings import client_settings
from log.port import Log
from ops.checker.check import check_log
from ops.checker.clients import fault_of
from ops.checker.violations import INVARIANTS, Violation
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
from ops.kafka.acl import READER
from ops.progress import reading_the_log
from ops.stack_log import reached, read_signatures
from schemas.event_signatures import LogSignatures
from schemas.topics import Topics

# As others are told while it holds the directory of a stopped stack.
NAME = "placet audit-log"
EXIT_BROKEN = 1


@dataclass
class Beside:
    """What a check tells beside its violations; of the calls that trust released, how many were computed again."""

    notes: list[str] = field(default_factory=list)
    releases: int = 0
    computed: int = 0

    def released(self, releases: int, computed: int) -> None:
        """Take how many calls trust released, and of how many the score was computed again."""
        self.releases, self.computed = releases, computed


def audit_log(
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    history: Annotated[
        list[Path] | None,
        typer.Option(help="A client's own history, one JSON object a line; may be repeated."),
    ] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option(envvar="PLACET_BOOTSTRAP_SERVERS", help="By default the stack's.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Read the whole log and say every broken invariant: exit code 0 when there is none, 1 otherwise."""
    with errors_as_exit_codes():
        lines = [line for path in history or () for line in read_history(path)]
        directory = DataDir(data_dir.expanduser().absolute())
        beside = Beside()
        with reached(directory, load_config(directory.config), bootstrap_servers, say_line, NAME) as config:
            settings = config.settings_for("audit-log", READER)
            topics = Topics(settings["topic_prefix"])
            signatures = read_signatures(settings)
            with reading_the_log(show=not json) as told:
                count, violations = asyncio.run(_check(settings, topics, lines, signatures, told, beside))
    tell_found(count, violations, beside, as_json=json)
    if violations:
        raise typer.Exit(EXIT_BROKEN)


def read_history(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a client's history (see `ops.checker.clients` for what they hold).

    Raises:
        UsageError: the file cannot be read, or a line is not what a history line must be.
    """
    try:
        # Not by `splitlines`: a text in JSON can contain other line breaks.
        texts = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The history {path} cannot be read ({error}): give a file of JSON lines."
        ) from error
    for number, text in enumerate(texts if texts[-1] else texts[:-1], 1):
        try:
            line = jsonlib.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"The history {path} cannot be read (line {number}: {error}): give a file of JSON lines."
            ) from error
        if fault := fault_of(line):
            raise UsageError(f"Line {number} of {path} {fault}: fix it.")
        yield line


async def _check(
    settings: dict[str, str],
    topics: Topics,
    lines: Sequence[dict[str, Any]],
    signatures: LogSignatures | None,
    told: Callable[[int, int], None],
    beside: Beside,
) -> tuple[int, list[Violation]]:
    try:
        clients = client_settings(settings["kafka_settings"])
        log: Log = KafkaLog(settings["bootstrap_servers"], topics, clients)
        try:
            note, released = beside.notes.append, beside.released
            return await check_log(log, lines, signatures=signatures, told=told, note=note, released=released)
        finally:
            await log.close()
    except SettingsRefused as error:
        raise UsageError(str(error)) from error
    except LogError as error:
        raise OpsError(str(error)) from error


def tell_found(count: int, violations: Sequence[Violation], beside: Beside, *, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        told = [asdict(found) for found in violations]
        trusted = {"released": beside.releases, "computed_again": beside.computed}
        print_json({"records": count, "violations": told, "notes": beside.notes, "trust": trusted})
        return
    for text in beside.notes:
        print_line(text)
    for found in violations:
        print_line(str(found))
    for number in sorted({found.invariant for found in violations}):
        print_line(f"{number}: {INVARIANTS[number]}")
    if beside.releases:
        said = f"{beside.releases:,} releases by trust" if beside.releases > 1 else "1 release by trust"
        print_line(f"{said}, the score of {beside.computed:,} computed again from people's words")
    print_line(f"{count:,} records read, {len(violations)} violations")
