"""`placet audit-log`: hold a whole log, and clients' histories if there are any, against the invariants."""

from __future__ import annotations

import asyncio
import json as jsonlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ops.checker.check import Records, check, read_log
from ops.checker.violations import INVARIANTS, Violation
from ops.commands.common import DataDirOption, JsonOption, errors_as_exit_codes, print_json
from ops.config import DEFAULT_DATA_DIR, DataDir, load_config
from ops.errors import OpsError, UsageError
from schemas.kafka_settings import KafkaSettingsRefused, client_settings
from schemas.topics import Topics
from services.runtime.kafka_log import KafkaLog
from services.runtime.log import Log, LogError

EXIT_BROKEN = 1


def audit_log(
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    history: Annotated[
        list[Path] | None,
        typer.Option(help="A client's own history, one JSON object a line; may be repeated."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Read the whole log and say every broken invariant: exit code 0 when there is none, 1 otherwise."""
    with errors_as_exit_codes():
        lines = [line for path in history or () for line in read_history(path)]
        settings = load_config(DataDir(data_dir.expanduser().absolute()).config).settings_for("audit-log")
        topics = Topics(settings["topic_prefix"])
        records = asyncio.run(_read(settings, topics))
        violations = check(records, lines, topics=topics)
    _tell(records, violations, json)
    if violations:
        raise typer.Exit(EXIT_BROKEN)


def read_history(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a client's history.

    Raises:
        UsageError: the file cannot be read, or a line is not a JSON object.
    """
    try:
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            line = jsonlib.loads(text)
            if not isinstance(line, dict) or not {"at", "client", "op"} <= line.keys():
                raise UsageError(f"Line {number} of {path} is not an object with at, client and op: mend it.")
            yield line
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The history {path} cannot be read ({error}): give a file of JSON lines."
        ) from error


async def _read(settings: dict[str, str], topics: Topics) -> Records:
    try:
        clients = client_settings(settings.get("kafka_settings", ""))
        log: Log = KafkaLog(settings["bootstrap_servers"], topics, clients)
        try:
            return await read_log(log)
        finally:
            await log.close()
    except (LogError, KafkaSettingsRefused) as error:
        raise OpsError(str(error)) from error


def _tell(records: Records, violations: Sequence[Violation], as_json: bool) -> None:
    count = sum(len(raws) for raws in records.values())
    if as_json:
        print_json({"records": count, "violations": [asdict(found) for found in violations]})
        return
    for found in violations:
        typer.echo(str(found))
    for number in sorted({found.invariant for found in violations}):
        typer.echo(f"{number}: {INVARIANTS[number]}")
    typer.echo(f"{count} records read, {len(violations)} violations")
