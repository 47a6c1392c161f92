"""`placet principals`: the people and services of the tenant, their accounts and roles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.lines import print_rows
from placet.cli.plugins import new_group
from placet.cli.session import (
    JsonFlag,
    connect,
    console,
    every,
    print_json,
    published_line,
    read_object,
)

principals_app = new_group(
    "principals",
    help="People and services, their accounts and roles.",
    invoke_without_command=True,
)


@principals_app.callback()
def principals(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the published principals, at their newest version."""
    if context.invoked_subcommand is not None:
        return
    with connect(context) as placet:
        found = every(lambda cursor: placet.principals.list(cursor=cursor))
    if as_json:
        print_json([dict(one) for one in found])
        return
    print_rows(
        ("principal", "version", "accounts", "roles", "agents", "state"),
        [
            (
                one["principal"],
                one["version"],
                ", ".join(one["subjects"]),
                ", ".join(one["roles"]),
                ", ".join(one["agents"]),
                "disabled" if one["disabled"] else "",
            )
            for one in found
        ],
        "No principals are published: the roles in tokens count.",
    )


@principals_app.command()
def publish(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The principal's name.")],
    subject: Annotated[
        list[str] | None, typer.Option(help="An account of the principal; repeat for more.")
    ] = None,
    role: Annotated[list[str] | None, typer.Option(help="A role; repeat for more.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="An agent that acts for the principal.")] = None,
    disabled: Annotated[
        bool,
        typer.Option(
            "--disabled",
            help="Disable the principal: its accounts lose all rights, and their approvals raise no trust any more.",
        ),
    ] = False,
    file: Annotated[Path | None, typer.Option(help="The document as JSON, instead of the options.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Publish a principal; its roles count from then on, whatever its tokens say."""
    given = {"subjects": subject or [], "roles": role or [], "agents": agent or [], "disabled": disabled}
    if file is not None and (subject or role or agent or disabled):
        raise typer.BadParameter("give --file, or the options, not both")
    document = given if file is None else read_object(file, "--file")
    with connect(context) as placet:
        published = placet.principals.publish(name, document)
    if as_json:
        print_json(published.raw)
        return
    console().print(safe.text(published_line(name, published)))
