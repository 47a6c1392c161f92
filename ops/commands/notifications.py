"""`placet notifications check|test`: try a notifications file before the notifier uses it."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from host.outgoing_tls import TlsRefused, trust_for_libraries
from ops.commands.common import JsonOption, errors_as_exit_codes, print_json, print_line
from ops.errors import UsageError
from services.processors.notifications.apprise_channel import silence_libraries
from services.processors.notifications.channel import Undelivered
from services.processors.notifications.config import Endpoint, Notifications, load_notifications
from services.processors.notifications.document import NotificationsRefused
from services.processors.notifications.render import trial

EXIT_REFUSED = 1

NotificationsFile = Annotated[Path, typer.Argument(help="A notifications file (YAML).", dir_okay=False)]


def load_file(file: Path, environment: Mapping[str, str]) -> Notifications:
    """Load a notifications file with its secrets.

    Raises:
        UsageError: It cannot be used; the message shows no secret.
    """
    silence_libraries()
    try:
        return load_notifications(file, environment, "")
    except NotificationsRefused as error:
        raise UsageError(f"The notifications file {file} cannot be used: {error}.") from error


def check_command(file: NotificationsFile, json: JsonOption = False) -> None:
    """Check a notifications file for typos and missing secrets. Exit 1 if it cannot be used."""
    silence_libraries()
    try:
        found = load_notifications(file, os.environ, "")
    except NotificationsRefused as error:
        problems = [problem.model_dump() for problem in error.problems]
    else:
        problems = []
        if not json:
            for endpoint in found.endpoints:
                print_line(f"{endpoint.key}: {endpoint.channel.kind}, {', '.join(endpoint.when.events)}")
    if json:
        print_json({"problems": problems})
    for problem in problems if not json else ():
        print_line(f"{file}: {problem['severity']}: {problem['path']}: {problem['message']}")
    if problems:
        raise typer.Exit(EXIT_REFUSED)


def trial_command(
    file: NotificationsFile,
    id: Annotated[str, typer.Option(help="The notification whose targets receive the message.")],  # noqa: A002
) -> None:
    """Send one message, marked as a test, to each target of a notification. Exit 1 if one did not accept it."""
    with errors_as_exit_codes():
        found = load_file(file, os.environ)
        endpoints = [one for one in found.endpoints if one.key.rpartition("/")[0] == id]
        if not endpoints:
            known = ", ".join(dict.fromkeys(one.key.rpartition("/")[0] for one in found.endpoints))
            raise UsageError(f"{file} has no notification {id!r}: it has {known}.")
        failed = _failing(endpoints)
    if failed:
        raise typer.Exit(EXIT_REFUSED)


def _failing(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    with TemporaryDirectory() as directory:
        try:
            trust_for_libraries(Path(directory) / "authorities.pem")
        except TlsRefused as error:
            raise UsageError(f"{error}.") from error
        return [endpoint for endpoint in endpoints if not asyncio.run(_try(endpoint))]


async def _try(endpoint: Endpoint) -> bool:
    try:
        await endpoint.channel.send(trial(endpoint.key, str(uuid.uuid4()), time.time_ns() // 1_000_000))
    except Undelivered as error:
        print_line(f"{endpoint.key} ({endpoint.channel.kind}): not accepted: {error}", err=True)
        return False
    print_line(f"{endpoint.key} ({endpoint.channel.kind}): accepted")
    return True
