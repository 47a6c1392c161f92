"""`placet token issue`: a bearer token from the installation's own issuer."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from gateway.identity.issuer import DAY_S, issue
from gateway.identity.keys import ISSUER_KEY, KeysUnreadable
from host.errors import EXIT_USAGE
from ops.commands.common import DataDirOption

# Any other role means what a policy makes of it, so that a slip of the pen would be found out by nobody.
BUILT_IN = ("agent", "reviewer", "operator", "analyst", "admin")
TOOL_ROLE = "tool:"
DEFAULT_DATA_DIR = Path(".placet")


def issue_command(
    subject: Annotated[str, typer.Option(help="Who the token is for: one person or service, one subject.")],
    role: Annotated[
        list[str] | None,
        typer.Option(help="agent, reviewer, operator, analyst, admin, tool:NAME; may be repeated."),
    ] = None,
    own_role: Annotated[
        list[str] | None,
        typer.Option(help="A role that your policies name, such as treasurer; may be repeated."),
    ] = None,
    tenant: Annotated[str, typer.Option(help="The tenant that it is valid for.")] = "default",
    project: Annotated[
        str, typer.Option(help="The project that it is valid for; * for the whole tenant.")
    ] = "default",
    agent: Annotated[str | None, typer.Option(help="The one agent that it can act for (role agent).")] = None,
    user: Annotated[
        str | None, typer.Option(help="The user that it can start executions for; * for any.")
    ] = None,
    workspace: Annotated[
        str | None, typer.Option(help="The workspace that it can start executions in; * for any.")
    ] = None,
    ttl_seconds: Annotated[int, typer.Option(help="Seconds until it expires.")] = 30 * DAY_S,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Issue a bearer token, signed by the installation's own issuer."""
    keys_dir = data_dir / "keys"
    if not (keys_dir / ISSUER_KEY).is_file():
        # A key created here would sign a token that no gateway accepts.
        typer.echo(f"{keys_dir} holds no issuer's key: name the stack's directory with --data-dir.", err=True)
        raise typer.Exit(EXIT_USAGE)
    roles = [*(role or ()), *(own_role or ())]
    try:
        _check_roles(role or (), own_role or (), agent)
        token = issue(keys_dir, subject, roles, tenant, project, agent, ttl_seconds, user, workspace)
    except ValueError as error:
        typer.echo(f"No token was issued: {error}.", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    except (KeysUnreadable, OSError) as error:
        typer.echo(f"The keys in {keys_dir} cannot be used: {error}.", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    typer.echo(json_text.dumps({"token": token}) if json else token)


def _check_roles(built_in: Sequence[str], own: Sequence[str], agent: str | None) -> None:
    if not built_in and not own:
        raise ValueError("give at least one --role, or --own-role for a role that your policies name")
    for role in built_in:
        if role not in BUILT_IN and not role.startswith(TOOL_ROLE):
            near = get_close_matches(role, BUILT_IN, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ValueError(
                f"{role} is not a role of Placet ({', '.join(BUILT_IN)}, {TOOL_ROLE}NAME): {meant}"
                f"for one that your policies name, give --own-role {role}"
            )
        if role == TOOL_ROLE:
            raise ValueError(f"{TOOL_ROLE} names no tool: give --role {TOOL_ROLE}NAME")
    for role in own:
        if role in BUILT_IN or role.startswith(TOOL_ROLE):
            raise ValueError(f"{role} is a role of Placet, not one of your own: give it with --role {role}")
    if agent is not None and "agent" not in built_in:
        raise ValueError(
            f"--agent {agent} makes a token for that agent alone: give --role agent too, or leave out --agent"
        )
