"""What is given to a command, refused where it is empty: `--agent "$AGENT"` of a variable that is not set."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

# Texts for people, which may say nothing; an answer that is empty is refused by its command.
MAY_BE_EMPTY = frozenset({"feedback", "reason", "value"})


class Command(TyperCommand):
    """A command that takes no empty option or argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and refuse those that are empty."""
        rest = super().parse_args(ctx, args)
        check_given(ctx)
        return rest


def check_given(context: Any) -> None:
    """Refuse an option or argument that was given empty.

    Raises:
        typer.BadParameter: one was.
    """
    if context.resilient_parsing:
        return
    for parameter in context.command.params:
        name = parameter.name
        source = context.get_parameter_source(name)
        if name in MAY_BE_EMPTY or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params.get(name)
        if "" in (value if isinstance(value, list | tuple) else (value,)):
            raise typer.BadParameter("it is empty", ctx=context, param=parameter)
