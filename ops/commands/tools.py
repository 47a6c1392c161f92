"""`placet tools start`: launch an external tool from its config.json, and keep it running."""

from __future__ import annotations

import asyncio
import json as json_text
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ops import process
from ops.commands.common import JsonOption, errors_as_exit_codes
from ops.errors import UsageError
from ops.ports import EVERY_ADDRESS, is_free
from ops.tools.file import ToolFile, read_tool_file
from ops.tools.gateway import check_authorities, require_gateway
from ops.tools.lines import Lines
from placet.cli.safe import escaped
from placet.cli.session import Settings
from placet.cli.token_roles import AGENT, roles_in
from placet.config import SettingRefused, checked_address

if TYPE_CHECKING:
    from ops.tools.supervision import Happened

URL, TOKEN = "PLACET_URL", "PLACET_TOKEN"
# Of our own variables a tool gets those of a client. All others configure the roles: passwords, keys, and addresses
# of what only they reach.
OURS, OF_CLIENTS = "PLACET_", frozenset({URL, TOKEN, "PLACET_PROJECT", "PLACET_CA_FILE"})
# The variables of roles that have names of their own: with passwords of databases, and of the telemetry's collector.
OF_ROLES = re.compile(r"DATABASE_URL|SCHEMA_REGISTRY_URL|OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS")
STANDARD_OUTPUT = 1
OWN_COMMAND = (sys.executable, "-m", "ops.tools.own")

ConfigFile = Annotated[Path, typer.Argument(help="The tool's config.json.", dir_okay=False)]


def start_command(context: typer.Context, file: ConfigFile, json: JsonOption = False) -> None:
    """Start a tool from its config.json, and supervise it.

    What happens is printed on standard output, a line each; what the tool prints goes to standard error. SIGTERM and
    SIGINT stop the tool: exit code 0. Exit code 1: it ended too often; 2: it cannot be started by this file;
    3: it has no command, and no gateway answers at the broker's address.
    """
    with errors_as_exit_codes():
        found = read_tool_file(file)
        environ = environment(found, os.environ, context.find_object(Settings) or Settings())
        _check_port(found.port, file)
        if found.command:
            _warn_of_roles(environ.get(TOKEN, ""))
        _run(found, file.absolute().parent, environ, json=json)


def environment(file: ToolFile, environ: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """The environment of a tool: that of this process without what is the roles' own, and the values of the file.

    Args:
        file: the tool's.
        environ: of this process.
        settings: the options before the command.

    Raises:
        UsageError: There is no command, and neither PLACET_URL nor the broker's address is a gateway, or the file of
            PLACET_CA_FILE cannot be used.
        GatewayUnreachableError: There is no command, and nothing answers at the broker's address.
    """
    given = {URL: settings.url, TOKEN: settings.token}
    found = {name: text for name, text in environ.items() if not _is_of_roles(name)}
    found |= {name: text for name, text in given.items() if text}
    found |= {
        "PORT": str(file.port),
        "BROKER_TYPE": file.broker.type,
        "BROKER_ADDRESS": file.broker.address,
    }
    if not file.command:
        found[URL] = _gateway(file, found.get(URL, ""))
    return found


def _is_of_roles(name: str) -> bool:
    return (name.startswith(OURS) and name not in OF_CLIENTS) or OF_ROLES.fullmatch(name) is not None


def _gateway(file: ToolFile, url: str) -> str:
    if not url:
        require_gateway(file.broker.http_url, file.broker.address)
        return file.broker.http_url
    try:
        address = checked_address(f"{URL} (or --url)", url)
    except SettingRefused as error:
        raise UsageError(str(error)) from error
    check_authorities(address)
    return address


def _warn_of_roles(token: str) -> None:
    """Tell of a token by which the tool could do more than an agent, such as decide or change the policy."""
    # Of tokens in another form, as a provider may issue them, the roles are not known here.
    further = sorted((roles_in(token) or frozenset()) - {AGENT})
    if further:
        roles = escaped(", ".join(further))
        print(
            f"warning: the tool gets {TOKEN}, which has the roles {roles}, and can do everything that they allow: "
            f"give it an agent's token (placet token issue --role {AGENT}), or unset {TOKEN}.",
            file=sys.stderr,
        )


def _check_port(port: int, file: Path) -> None:
    if not is_free(port, EVERY_ADDRESS[0]):
        raise UsageError(
            f"Nothing can listen on port {port} now: end the program that uses it, or change `port` in {file}."
        )


def _run(file: ToolFile, directory: Path, environ: Mapping[str, str], *, json: bool) -> None:
    from ops.tools.child import Launch
    from ops.tools.supervision import Supervision  # grpc, which a wrong file does not need

    async def supervise() -> None:
        await Supervision(launch, lambda happened: lines.print(_line(happened, json=json))).run()

    command, place = (file.command, directory) if file.command else (OWN_COMMAND, process.PACKAGE_ROOT)
    launch = Launch(command, place, environ, file.port)
    with Lines(_standard_output(), lambda count: _line_of_missing(count, json=json)) as lines:
        asyncio.run(supervise())


def _standard_output() -> int:
    # Where it was closed from the start, another file can have its number.
    return os.open(os.devnull, os.O_WRONLY) if sys.stdout is None else STANDARD_OUTPUT


def _line(happened: Happened, *, json: bool) -> str:
    if json:
        return json_text.dumps({"event": happened.event, **happened.fields})
    return escaped(happened.text, lines=True)


def _line_of_missing(count: int, *, json: bool) -> str:
    if json:
        return json_text.dumps({"event": "missing", "lines": count})
    return f"Lines are missing here, as they could not be written: {count}."
