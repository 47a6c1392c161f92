"""The `placet` command: this distribution's commands, and those that others add."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version as installed_version
from typing import Annotated, TextIO

import typer

from placet.cli import safe
from placet.cli.plugins import group_class
from placet.cli.session import Settings
from placet.config import NotConfigured
from placet.errors import NoAnswer, PlacetError, Refused, Unavailable, Unreachable
from placet.ids import InvalidId

DONE, REFUSED, USAGE, NOT_REACHABLE = 0, 1, 2, 3
INTERRUPTED = 130
# As a shell says of what SIGPIPE has ended: 128 and the signal's number.
NOT_READ = 141
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
# What a shell's completion asks with, and a width that no help reaches.
_COMPLETES = "_PLACET_COMPLETE"
_UNBROKEN = "10000"

app = typer.Typer(
    name="placet",
    cls=group_class(""),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"placet {installed_version('placet')}")
        raise typer.Exit(DONE)


@app.callback()
def options(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(help="The gateway; else PLACET_URL, else .placet/ here.")] = None,
    token: Annotated[
        str | None, typer.Option(help="Who asks; else PLACET_TOKEN, else .placet/ here.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="Where to work, for a token of the whole tenant; else PLACET_PROJECT."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Agents propose; people assent; the log remembers."""
    context.obj = Settings(url, token, project)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 done, 1 refused or not found or its output could not be written, 2 wrong usage, 3 not reachable, 130 where
        it was interrupted, 141 where nobody reads its output any more.
    """
    try:
        code = _run(arguments)
    except OSError as error:
        # Where a file cannot be read, commands say so themselves.
        is_output = error.filename is None and error.errno in _NOT_WRITTEN
        _say(f"the output could not be written: {error.strerror}" if is_output else str(error))
        code = REFUSED
    return _flushed(code)


def _flushed(code: int) -> int:
    """The exit code, once what was printed is written."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
        return code or NOT_READ
    except OSError as error:
        if code == DONE:
            _say(f"the output could not be written: {error.strerror}")
        _drop(sys.stdout)
        return code or REFUSED
    return code


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        # The exit code is all there is.
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere: it would be tried again at the very end, with a traceback."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    _show_what_has_no_character()
    if _COMPLETES in os.environ:
        # typer breaks a candidate's help at the terminal's width, and a shell takes each line for a candidate.
        os.environ.update(COLUMNS=_UNBROKEN, TERMINAL_WIDTH=_UNBROKEN)
    try:
        app(args=None if arguments is None else list(arguments), prog_name="placet")
    except SystemExit as exit_:
        # typer and rich make an exit of a pipe that is closed, such as that of `head`.
        if isinstance(exit_.__context__, BrokenPipeError):
            _drop(sys.stdout)
            return NOT_READ
        # A prompt makes an abort of an interrupt, and typer an exit of it; the input's end, which is a no, as well.
        if exit_.__context__ is not None and isinstance(exit_.__context__.__context__, KeyboardInterrupt):
            return INTERRUPTED
        return exit_.code if isinstance(exit_.code, int) else USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except (PlacetError, InvalidId) as error:
        _say(safe.escaped(explained(error), lines=True))
        return exit_code(error)
    return DONE


def _show_what_has_no_character() -> None:
    """Escape, on a terminal that is not UTF-8, what its encoding cannot say: an agent's text may have anything."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def exit_code(error: Exception) -> int:
    """The exit code that tells what went wrong."""
    if isinstance(error, Unreachable | Unavailable):
        return NOT_REACHABLE
    if isinstance(error, NotConfigured | InvalidId):
        return USAGE
    return REFUSED


def explained(error: Exception) -> str:
    """One sentence, and what a refusal carries besides."""
    lines = [str(error)]
    if isinstance(error, NoAnswer):
        lines.append(f"look with `{_looking_at(error.path)}` before you do it again")
    if isinstance(error, Refused):
        for item in error.fields.get("errors") or ():
            place, said = (item.get("path"), item.get("message")) if isinstance(item, dict) else ("", item)
            line = f"{place}: {said}" if place else f"{said}"
            # Where there is one reason only, the refusal's own sentence is it.
            if line != error.detail and said != error.detail:
                lines.append(f"  {line}")
    return "\n".join(lines)


def _looking_at(path: str) -> str:
    """The command that shows whether a request of the interface was done."""
    kind, name, *more = [*path.strip("/").split("/"), ""]
    if kind == "executions" and more[:1] == ["tool-calls"] and len(more) > 1 and more[1]:
        return f"placet show {name}/{more[1]}"
    by_kind = {
        "holds": f"placet show {name}",
        "executions": f"placet state {name}" if name else "placet executions",
        "policies": f"placet policy show {name}",
        "tools": "placet tools",
        "principals": "placet principals",
        "standing-rules": "placet rules",
    }
    return by_kind.get(kind, "placet audit") if name != "decisions" else "placet inbox"


def main() -> None:
    """The console script."""
    sys.exit(run())
