"""`placet policy publish` and `versions`; the server adds check, test and diff, which need its engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.plugins import group_class
from placet.cli.session import JsonFlag, connect, console, print_json, print_table, read_text

_NAME = re.compile(r"^policy:[ \t]*[\"']?([A-Za-z0-9._:-]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)

app = typer.Typer(
    name="policy",
    help="Check, test, compare and publish policies.",
    cls=group_class("policy"),
    no_args_is_help=True,
)


@app.callback()
def policy() -> None:
    """Check, test, compare and publish policies."""


@app.command()
def publish(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True)],
    as_json: JsonFlag = False,
) -> None:
    """Publish a policy document (YAML) as its next version."""
    document = read_text(file, "FILE")
    named = _NAME.findall(document)
    if len(named) != 1:
        raise typer.BadParameter(f"{file} has no line `policy: NAME`", param_hint="FILE")
    with connect(context) as placet:
        published = placet.policies.publish(named[0], document)
    if as_json:
        print_json(published.raw)
        return
    console().print(safe.text(f"{named[0]} version {published.version} is published"))
    for warning in published.warnings:
        console().print(safe.text(f"! {warning}", style="yellow"))


@app.command()
def versions(context: typer.Context, name: str, as_json: JsonFlag = False) -> None:
    """List the published versions of a policy."""
    with connect(context) as placet:
        found = placet.policies.versions(name).items
    if as_json:
        print_json([dict(one) for one in found])
        return
    print_table(
        ("version", "published", "by"),
        [(one.get("version"), one.get("at") or one.get("published_at"), one.get("by")) for one in found],
        f"No policy {name} is published.",
    )
