"""Errors that end a process or a command until an operator acts: one sentence each, with an exit code."""

from __future__ import annotations

import sys
from typing import NoReturn

from host.log_text import shown

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3


class OperatorError(Exception):
    """An error on which an operator has to act; `str()` is one sentence that says what to do.

    Attributes:
        exit_code: the exit code of a process or command that it ends, unless the role uses one code for all errors.
    """

    exit_code = EXIT_UNREACHABLE


class SettingsRefused(OperatorError, ValueError):
    """A setting, or a file named by one, cannot be used; the message says which one, and what to correct."""

    exit_code = EXIT_USAGE


class AddressTaken(OperatorError, OSError):
    """The process cannot listen on the requested address; the message says what to do."""

    exit_code = EXIT_USAGE


def indented(text: str) -> str:
    """A message of a log: only its first line begins in the first column, so that no other looks like a message."""
    return text.rstrip("\n").replace("\n", "\n    ")


def on_one_line(text: str) -> str:
    """A text of several lines as one line, such as the message of a database's client."""
    return " ".join(filter(None, map(str.strip, text.split("\n"))))


def end_process(error: BaseException, code: int) -> NoReturn:
    """End a process with the error's sentence and an exit code; further lines of it are indented, as in a log."""
    sys.stderr.write(indented(shown(str(error))) + "\n")
    raise SystemExit(code) from error
