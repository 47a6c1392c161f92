"""Every prompt of the command: what was typed before a prompt stood there is no answer to it.

A line that is typed ahead, or the second line of what is pasted, would otherwise approve or grant what nobody has
seen. So what the terminal holds is discarded right before each prompt, and the answer is read from the terminal
itself: what `sys.stdin` has read ahead does not count. An input that is no terminal is read as it is.
"""

from __future__ import annotations

import errno
import getpass
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Protocol

from placet.errors import PlacetError

if sys.platform != "win32":
    import termios

_PART = 4096
# Of a longer line of a terminal Linux silently drops the rest (N_TTY_BUF_SIZE of n_tty.c, less the end of the line).
_LINE_MOST = 4095
_YES, _NO = ("y", "yes"), ("", "n", "no")
NOT_USED = "[what was typed before this prompt is not used]"


class InputEnded(PlacetError):
    """The input has ended (Ctrl-D): nothing was sent."""


class _Cut(Exception):
    """The terminal may have dropped the rest of a line."""


class Withdrawn(Exception):
    """What was asked for is not wanted any more."""


class Watch(Protocol):
    """What may withdraw a prompt while it waits."""

    def fileno(self) -> int:
        """A descriptor that can be read whenever there is something to look at."""

    def is_over(self) -> bool:
        """Look at what has come; returns True if nothing is to be asked any more."""


def ask(text: str, *, hidden: bool = False, optional: bool = False, watch: Watch | None = None) -> str:
    """Prompt for a line, again while it is empty.

    Args:
        text: what is asked for, safe to show.
        hidden: do not show what is typed.
        optional: an empty line is an answer.
        watch: withdraws the prompt; not on Windows.

    Raises:
        InputEnded: there is no further line.
        Withdrawn: by `watch`.
    """
    while True:
        try:
            line = _line(f"{text}: ", hidden, watch)
        except UnicodeDecodeError as error:
            _write(f"Error: that is no {error.encoding}\n")
            continue
        except _Cut:
            _write(
                f"Error: a terminal cuts lines at {_LINE_MOST:,} bytes: give a longer text on the command line\n"
            )
            continue
        if line or optional:
            return line
        if hidden:
            # Nothing was seen: it may have been typed elsewhere.
            _write("Error: nothing was typed\n")


def agrees(question: str, *, watch: Watch | None = None) -> bool:
    """Ask for yes or no, which is also the end of the input; raises as `ask`."""
    while True:
        try:
            said = ask(f"{question} [y/N]", optional=True, watch=watch).strip().lower()
        except InputEnded:
            return False
        if said in (*_YES, *_NO):
            return said in _YES
        _write("Error: answer y or n\n")


def _line(prompt: str, hidden: bool, watch: Watch | None) -> str:
    if not sys.stdin.isatty():
        _write(prompt)
        return _without_end(sys.stdin.readline())
    if sys.platform == "win32":
        return _on_windows(prompt, hidden)
    terminal = sys.stdin.fileno()
    with _hidden(terminal) if hidden else _shown(terminal):
        _write(prompt)
        return _typed(terminal, watch)


def _on_windows(prompt: str, hidden: bool) -> str:
    console = import_module("msvcrt")
    while console.kbhit():
        console.getwch()
    try:
        if hidden:
            return getpass.getpass(prompt)
        _write(prompt)
        return input()
    except EOFError:
        raise InputEnded("the input has ended: nothing was sent") from None


@contextmanager
def _shown(terminal: int) -> Iterator[None]:
    _discard(terminal)
    try:
        yield
    except (KeyboardInterrupt, InputEnded, Withdrawn):
        # The cursor stands behind the prompt.
        _write("\n")
        raise


@contextmanager
def _hidden(terminal: int) -> Iterator[None]:
    """Within this context the terminal does not show what is typed."""
    before = termios.tcgetattr(terminal)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    try:
        termios.tcsetattr(terminal, termios.TCSADRAIN, silent)
        _discard(terminal)
        yield
    finally:
        # What came after the line, such as the rest of what was pasted, would be shown from now on.
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        _write("\n")


def _discard(terminal: int) -> None:
    """Discard what the terminal holds, and say so if there was a line."""
    if select.select([terminal], [], [], 0)[0]:
        _write(f"{NOT_USED}\n")
    try:
        termios.tcflush(terminal, termios.TCIFLUSH)
    except termios.error as error:
        # The terminal is gone: so is the input.
        if error.args[0] != errno.EIO:
            raise


def _typed(terminal: int, watch: Watch | None) -> str:
    """The line that is typed from now on.

    Raises:
        InputEnded: the person has ended the input, or the terminal is gone.
        Withdrawn: by `watch`.
        _Cut: it may not be all that was typed.
    """
    found = b""
    while not found.endswith(b"\n"):
        if watch is not None:
            if watch.is_over():
                raise Withdrawn
            ready, _, _ = select.select([terminal, watch.fileno()], [], [])
            if terminal not in ready:
                continue
        part = _read(terminal)
        found += part
        if not part:
            break
    line = found.split(b"\n", 1)[0] + (b"\n" if b"\n" in found else b"")
    if len(line) > _LINE_MOST:
        raise _Cut
    return _without_end(line.decode(sys.stdin.encoding))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, _PART)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


def _without_end(line: str) -> str:
    """A line without its end.

    Raises:
        InputEnded: it is none.
    """
    if not line:
        raise InputEnded("the input has ended: nothing was sent")
    return line.removesuffix("\n").removesuffix("\r")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
