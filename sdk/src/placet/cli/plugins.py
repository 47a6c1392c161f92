"""Commands that another distribution adds: entry points of the group `placet.commands`.

The name of an entry point is the command's (`policy.check` is `placet policy check`), the object a function
with typer's annotations. It is loaded when it is invoked or asked for its help; one that can't be loaded
says so then, and breaks nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

GROUP = "placet.commands"
# Named here only so that a missing one can be explained.
OF_THE_SERVER = frozenset(
    {"up", "down", "status", "demo", "doctor", "replay", "export", "bench", "token", "keys", "policy check"}
    | {
        "policy test",
        "policy diff",
        "policy backtest",
        "notifications check",
        "notifications test",
        "vault rotate-master",
    }
)


@lru_cache(maxsize=1)
def _contributed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names_under(prefix: str) -> list[str]:
    """The commands added under a group; `""` is the top."""
    start = f"{prefix}." if prefix else ""
    rest = [name[len(start) :] for name in _contributed() if name.startswith(start)]
    return sorted({name.partition(".")[0] for name in rest})


def find(prefix: str, name: str) -> Any:
    """The added command or group of that name, None when there is none."""
    full = f"{prefix}.{name}" if prefix else name
    if full in _contributed():
        return _command(name, _function(_contributed()[full]))
    if names_under(full):
        return typer.main.get_command(_group_app(full))
    return None


def _group_app(full: str) -> typer.Typer:
    app = typer.Typer(
        cls=group_class(full), add_completion=False, rich_markup_mode=None, no_args_is_help=True
    )

    @app.callback(help=f"Commands under `{full.replace('.', ' ')}`.")
    def group() -> None:
        return None

    return app


def _function(point: EntryPoint) -> Callable[..., Any]:
    try:
        loaded = point.load()
        if not callable(loaded):
            raise TypeError(f"{point.value} is not a function")
    except Exception as error:
        return _unavailable(point, error)
    function: Callable[..., Any] = loaded
    return function


def _unavailable(point: EntryPoint, error: Exception) -> Callable[..., Any]:
    why = f"{type(error).__name__}: {error}"

    def unavailable(context: typer.Context) -> None:
        print(f"`placet {point.name.replace('.', ' ')}` can't be loaded: {why}", file=sys.stderr)
        raise typer.Exit(1)

    unavailable.__doc__ = f"Not available: {why}"
    return unavailable


def _command(name: str, function: Callable[..., Any]) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    broken = function.__name__ == "unavailable"
    app.command(name, context_settings=settings if broken else None)(function)
    return typer.main.get_command(app)


def group_class(prefix: str) -> type[TyperGroup]:
    """A command group that also finds what others added under `prefix`."""

    class OpenGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            own = super().list_commands(ctx)
            return own + [name for name in names_under(prefix) if name not in own]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            own = super().get_command(ctx, cmd_name)
            return own if own is not None else find(prefix, cmd_name)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            full = f"{prefix} {args[0]}".strip()
            if full in OF_THE_SERVER and self.get_command(ctx, args[0]) is None:
                ctx.fail(f"`placet {full}` comes with the server: pip install placet-server")
            return super().resolve_command(ctx, args)

    return OpenGroup
