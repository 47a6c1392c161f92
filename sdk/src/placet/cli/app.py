"""The `placet` command: the commands of this distribution and those of its plugins."""

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
# As a shell reports a command that SIGPIPE ended: 128 plus the signal's number.
NOT_READ = 141
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
# The variable that a shell's completion sets, and a width that no help text reaches.
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
    url: Annotated[
        str | None,
        typer.Option(
            help="The gateway's address. Default: PLACET_URL, then PLACET_DATA_DIR or .placet/ here."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="The access token. Default: PLACET_TOKEN, then PLACET_DATA_DIR or .placet/ here."),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="The project, for a token of the whole tenant. Default: PLACET_PROJECT."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Agents propose, people approve, and the log records both."""
    context.obj = Settings(url, token, project)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 done, 1 refused or not found or output could not be written, 2 wrong usage, 3 not reachable, 130
        interrupted, 141 if the reader has closed the output.
    """
    try:
        code = _run(arguments)
    except OSError as error:
        # Commands report files that cannot be read themselves.
        is_output = error.filename is None and error.errno in _NOT_WRITTEN
        _say(f"the output could not be written: {error.strerror}" if is_output else str(error))
        code = REFUSED
    return _flushed(code)


def _flushed(code: int) -> int:
    """Flush the output, and return the exit code."""
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
        # Only the exit code is left to report it.
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Discard what a stream still buffers: Python would flush it again at exit, with a traceback."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    _show_what_has_no_character()
    if _COMPLETES in os.environ:
        # typer wraps a candidate's help at the terminal's width, and a shell reads each line as a candidate.
        os.environ.update(COLUMNS=_UNBROKEN, TERMINAL_WIDTH=_UNBROKEN)
    try:
        app(args=None if arguments is None else list(arguments), prog_name="placet")
    except SystemExit as exit_:
        # typer and rich turn a closed pipe, such as that of `head`, into an exit.
        if isinstance(exit_.__context__, BrokenPipeError):
            _drop(sys.stdout)
            return NOT_READ
        # A prompt turns an interrupt into an abort, and typer the abort into an exit; so does the end of input, a no.
        if exit_.__context__ is not None and isinstance(exit_.__context__.__context__, KeyboardInterrupt):
            return INTERRUPTED
        return exit_.code if isinstance(exit_.code, int) else USAGE
    except BrokenPipeError:
        _drop(sys.stdout)
        return NOT_READ
    except KeyboardInterrupt:
        return INTERRUPTED
    except (PlacetError, InvalidId) as error:
        _say(safe.escaped(explained(error), lines=True))
        return exit_code(error)
    return DONE


def _show_what_has_no_character() -> None:
    """Escape characters that a non-UTF-8 terminal cannot encode: an agent's text can contain any."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def exit_code(error: Exception) -> int:
    """The exit code for an error."""
    if isinstance(error, Unreachable | Unavailable):
        return NOT_REACHABLE
    if isinstance(error, NotConfigured | InvalidId):
        return USAGE
    return REFUSED


def explained(error: Exception) -> str:
    """The error's sentence, and the further errors of a refusal."""
    lines = [str(error)]
    if isinstance(error, NoAnswer | Unavailable) and error.path is not None:
        lines.append(f"check with `{_looking_at(error.path)}` before you repeat it")
    elif isinstance(error, Unreachable):
        lines.append("is `placet up` running? PLACET_URL (or --url) names its address")
    if isinstance(error, Refused):
        for item in error.fields.get("errors") or ():
            place, said = (item.get("path"), item.get("message")) if isinstance(item, dict) else ("", item)
            if isinstance(item, dict) and item.get("severity") == "warning":
                said = f"{said} (warning)"
            line = f"{place}: {said}" if place else f"{said}"
            # A single reason is already the refusal's own sentence.
            if line != error.detail and said != error.detail:
                lines.append(f"  {line}")
    return "\n".join(lines)


def _looking_at(path: str) -> str:
    """The command that shows whether a change was made."""
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
