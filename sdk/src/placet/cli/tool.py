"""`placet tool put` and `register`: publish tool definitions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from placet.cli import inputs, safe
from placet.cli.plugins import new_group
from placet.cli.session import JsonFlag, connect, console, print_json, published_line, read_object

STANDARD_INPUT = "-"

app = new_group("tool", help="Publish tools.", no_args_is_help=True)


@app.callback()
def tool() -> None:
    """Publish tools."""


@app.command()
def register(
    context: typer.Context,
    modules: Annotated[
        list[str],
        typer.Argument(
            metavar="MODULE…", help="Such as billing.tools; the current directory is searched too."
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Publish the functions of Python modules gated with `register=True`; needs the role operator."""
    functions = [function for module in modules for function in _asking(module)]
    if not functions:
        raise typer.BadParameter("no function there is gated with register=True", param_hint="MODULE")
    with connect(context) as placet:
        found = placet.tools.register(*functions)
    if as_json:
        print_json([{"name": one.name, "version": one.version, "is_new": one.is_new} for one in found])
        return
    for one in found:
        said = "is published" if one.is_new else "was published already"
        console().print(safe.text(f"{one.name} version {one.version} {said}"))


def _asking(module: str) -> list[Callable[..., Any]]:
    """The functions of a module that ask to be registered.

    Raises:
        typer.BadParameter: it cannot be imported, or a function in it cannot be gated so.
    """
    from placet.bodies import CannotBeGated
    from placet.registering import DECLARED

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        names = vars(import_module(module))
    except CannotBeGated as error:
        raise typer.BadParameter(f"{module}: {error}", param_hint="MODULE") from error
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise typer.BadParameter(f"{module} cannot be imported: {why}", param_hint="MODULE") from error
    found = {id(one): one for one in names.values() if hasattr(one, DECLARED)}
    return [one for one in found.values() if getattr(one, DECLARED)[1].register]


@app.command()
def put(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="The MCP tool definition, a JSON object with its name; - reads it from standard input."
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Publish a tool's definition as its next version; needs the role operator."""
    is_input = str(file) == STANDARD_INPUT
    definition = inputs.read_object(STANDARD_INPUT, "FILE") if is_input else read_object(file, "FILE")
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        what = "the definition" if is_input else file
        raise typer.BadParameter(f"{what} has no name", param_hint="FILE")
    with connect(context) as placet:
        published = placet.tools.put(name, definition)
    if as_json:
        print_json(published.raw)
    else:
        console().print(safe.text(published_line(name, published)))
