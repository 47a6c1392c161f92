"""`placet tool put`: publishing what a tool's name stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placet.cli import safe
from placet.cli.plugins import group_class
from placet.cli.session import JsonFlag, connect, console, print_json, read_object

app = typer.Typer(
    name="tool", help="Publish tools.", cls=group_class("tool"), no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def tool() -> None:
    """Publish tools."""


@app.command()
def put(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The MCP tool definition, a JSON object with its name.")],
    as_json: JsonFlag = False,
) -> None:
    """Publish a tool's definition as its next version; needs the role operator."""
    definition = read_object(file, "FILE")
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise typer.BadParameter(f"{file} has no name", param_hint="FILE")
    with connect(context) as placet:
        published = placet.tools.put(name, definition)
    if as_json:
        print_json(published.raw)
    else:
        console().print(safe.text(f"{name} version {published.version} is published"))
