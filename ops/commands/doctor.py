"""`placet doctor`: check that this machine can run a stack."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ops.commands.common import DataDirOption, JsonOption, errors_as_exit_codes, print_json, table
from ops.config import DEFAULT_DATA_DIR, DEFAULT_PORT, DataDir
from ops.doctor import FAILED, OK, examine
from ops.ports import HIGHEST
from placet.cli import safe
from placet.cli.session import console

COLOURS = {OK: "green", FAILED: "red"}


def doctor(
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    port: Annotated[
        int, typer.Option(min=1, max=HIGHEST, help="The gateway's port; checked if no stack runs.")
    ] = DEFAULT_PORT,
    json: JsonOption = False,
) -> None:
    """Check Python, Java, Kafka's jars, the disk, ports, topics, Kafka's version and the clock."""
    with errors_as_exit_codes():
        findings = tuple(examine(DataDir(data_dir.expanduser().absolute()), port))
    healthy = all(found.state != FAILED for found in findings)
    if json:
        print_json({"healthy": healthy, "checks": [asdict(found) for found in findings]})
    else:
        shown = table("check", "state", "detail")
        for found in findings:
            colour = COLOURS.get(found.state, "yellow")
            shown.add_row(found.check, safe.text(found.state, style=colour), safe.text(found.detail))
        console().print(shown)
    if not healthy:
        raise typer.Exit(1)
