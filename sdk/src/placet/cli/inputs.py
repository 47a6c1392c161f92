"""What a person gives a command: variables, typed without being shown, and JSON objects."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from placet.canonical import MalformedJson, parse_strict
from placet.cli import safe
from placet.cli.prompting import Watch, ask
from placet.cli.session import is_interactive
from placet.cli.telling import list_one
from placet.models import Hold


def variables_of(
    hold: Hold, text: str | None, given: dict[str, str] | None = None, watch: Watch | None = None
) -> dict[str, Any]:
    """The values of variables, from a hidden prompt or from the standard input.

    Args:
        hold: the question.
        text: the argument: `-` for the standard input, None for prompts.
        given: the values that were typed before; those that are typed now are added.
        watch: withdraws a prompt.
    """
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
    given = {} if given is None else given
    for field in hold.raw.get("fields") or ():
        if (name := name_of(field)) not in given:
            if said := _said_of(field):
                list_one(said)
            given[name] = ask(
                safe.escaped(name), hidden=_is_secret(field), optional=_optional(field), watch=watch
            )
    return {name: value for name, value in given.items() if value}


def name_of(field: Any) -> str:
    """The name of a requested variable: the field itself, or its `name`."""
    return str(_more(field).get("name", field))


def _more(field: Any) -> Mapping[str, Any]:
    return field if isinstance(field, Mapping) else {}


def _is_secret(field: Any) -> bool:
    # What is typed is sealed all the same.
    return _more(field).get("secret") is not False


def _optional(field: Any) -> bool:
    return _more(field).get("required") is False


def _said_of(field: Any) -> str:
    """What is said of a variable, and what its value must contain; its agent wrote it, so it is not in the prompt."""
    more = _more(field)
    said = [str(more["description"])] if more.get("description") else []
    if _optional(field):
        said.append("optional")
    if more.get("pattern"):
        said.append(f"pattern: {more['pattern']}")
    return f"{name_of(field)}: {'; '.join(said)}" if said else ""


def read_text(hint: str) -> str:
    """The text on the standard input, without the line break at its end.

    Raises:
        typer.BadParameter: it is not UTF-8.
    """
    try:
        return sys.stdin.read().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error


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
        raise typer.BadParameter("it should be a JSON object", param_hint=hint)
    return value
