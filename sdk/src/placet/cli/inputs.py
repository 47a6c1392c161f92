"""What a person gives a command: variables, typed without being shown, and JSON objects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from placet.canonical import MalformedJson, parse_strict
from placet.cli import safe
from placet.cli.session import is_interactive
from placet.models import Hold


def variables_of(hold: Hold, text: str | None) -> dict[str, Any]:
    """The values of variables, from a hidden prompt or from the standard input."""
    if text == "-":
        return read_object("-", "VALUE")
    if text is not None:
        detail = (
            "other users can see a secret on the command line: omit it to be prompted, or give - and JSON"
        )
        raise typer.BadParameter(detail, param_hint="VALUE")
    if not is_interactive():
        raise typer.BadParameter(
            "there is no terminal to prompt on: give - and a JSON object", param_hint="VALUE"
        )
    given = {str(_named(field)): _prompted(field) for field in hold.raw.get("fields") or ()}
    return {name: value for name, value in given.items() if value}


def _named(field: Any) -> Any:
    """The name of a requested variable: the field itself, or its `name`."""
    return field.get("name") if isinstance(field, dict) else field


def _prompted(field: Any) -> str:
    """The value of a variable that a person types; empty for an optional one that is left out."""
    more = field if isinstance(field, dict) else {}
    optional = more.get("required") is False
    words = [str(_named(field)), f"({more['description']})" if more.get("description") else ""]
    said: str = typer.prompt(
        safe.escaped(" ".join([*filter(None, words), *(["[optional]"] if optional else [])])),
        default="" if optional else None,
        show_default=False,
        # What is typed is sealed all the same.
        hide_input=more.get("secret") is not False,
        err=True,
    )
    return said


def read_object(text: str, hint: str = "--arguments") -> dict[str, Any]:
    """The JSON object in an option: as text, in a file (`@FILE`), or on the standard input (`-`).

    Raises:
        typer.BadParameter: it cannot be read, or is not an object.
    """
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
        value = parse_strict(text)
    except (OSError, MalformedJson, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{hint} is a JSON object", param_hint=hint)
    return value
