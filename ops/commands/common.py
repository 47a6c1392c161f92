"""Shared by all commands: the data directory's option, and errors as one sentence with an exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.errors import OpsError
from placet.cli.safe import escaped

if TYPE_CHECKING:
    from rich.table import Table

DataDirOption = Annotated[
    Path, typer.Option("--data-dir", envvar="PLACET_DATA_DIR", help="The stack's data directory.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def errors_as_exit_codes() -> Iterator[None]:
    """Print an operator's error as one sentence and exit with its code."""
    try:
        yield
    except OpsError as error:
        # The last part of a sentence can be a question of another module (did you mean …?), which ends it.
        print_line(re.sub(r"\?\.$", "?", str(error)), err=True)
        raise typer.Exit(error.exit_code) from error


def print_line(text: str, *, err: bool = False) -> None:
    """Print a sentence on one line; control characters from logs or paths are escaped."""
    typer.echo(escaped(text, lines=True), err=err)


def say_line(text: str) -> None:
    """Print a sentence to the person beside the command's answer: on standard error."""
    print_line(text, err=True)


def table(*heads: str, title: str | None = None) -> Table:
    """A table for `console()`; cells fold on a narrow terminal and are never cut, so that they can be copied."""
    from rich.table import Column, Table

    return Table(*(Column(head, overflow="fold") for head in heads), title=title)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, indent=2))
