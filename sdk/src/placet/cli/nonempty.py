"""Refuses empty options and arguments: `--agent "$AGENT"` with a variable that is not set.

What is wrong with others is said in the command's words, not in those of the library that reads them. Empty
ones are checked as typed: once parsed, an empty path is the working directory.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# Texts for people, which may be empty; the command itself refuses an empty answer.
MAY_BE_EMPTY = frozenset({"feedback", "reason", "value"})
_SHOULD = "Input should be "


class _Checked:
    """A command or group that takes no empty option or argument, unless declared otherwise."""

    takes_empty = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse empty options and arguments, and parse the others."""
        if not (self.takes_empty or ctx.resilient_parsing):
            _check_given(self, ctx, args)
        try:
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except typer.BadParameter as error:
            error.message = _in_own_words(error.message)
            raise
        return rest


class Command(_Checked, TyperCommand):
    """A command that takes no empty option or argument."""


class Group(_Checked, TyperGroup):
    """A group that takes no empty option."""


def _check_given(command: Any, context: Any, arguments: list[str]) -> None:
    """Refuse an empty option or argument.

    Raises:
        typer.BadParameter: one is empty.
    """
    typed, _, _ = command.make_parser(context).parse_args(list(arguments))
    for parameter in command.params:
        value = typed.get(parameter.name)
        if parameter.name in MAY_BE_EMPTY or "" not in (
            value if isinstance(value, list | tuple) else (value,)
        ):
            continue
        raise typer.BadParameter("it is empty", ctx=context, param=parameter)


def _in_own_words(message: str) -> str:
    """A message without what pydantic puts around it, by which typer reads values."""
    said = message.removeprefix("Value error, ")
    if said.startswith(_SHOULD):
        said = f"it should be {said.removeprefix(_SHOULD).partition(', unable to parse')[0]}"
    return said
