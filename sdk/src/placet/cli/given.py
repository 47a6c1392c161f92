"""What is given to a command, refused where it is empty: `--agent "$AGENT"` of a variable that is not set.

It is looked at as it was typed: an empty path that was read is one of the working directory.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# Texts for people, which may say nothing; an answer that is empty is refused by its command.
MAY_BE_EMPTY = frozenset({"feedback", "reason", "value"})


class _Checked:
    """A command or group that takes no empty option or argument, unless it says so."""

    takes_empty = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse options and arguments that are empty, and read the others."""
        if not (self.takes_empty or ctx.resilient_parsing):
            _check_given(self, ctx, args)
        rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return rest


class Command(_Checked, TyperCommand):
    """A command that takes no empty option or argument."""


class Group(_Checked, TyperGroup):
    """A group that takes no empty option."""


def _check_given(command: Any, context: Any, arguments: list[str]) -> None:
    """Refuse an option or argument that was given empty.

    Raises:
        typer.BadParameter: one was.
    """
    typed, _, _ = command.make_parser(context).parse_args(list(arguments))
    for parameter in command.params:
        value = typed.get(parameter.name)
        if parameter.name in MAY_BE_EMPTY or "" not in (
            value if isinstance(value, list | tuple) else (value,)
        ):
            continue
        raise typer.BadParameter("it is empty", ctx=context, param=parameter)
