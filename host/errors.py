"""Errors that end a process or a command until an operator acts: one sentence each, with an exit code."""

from __future__ import annotations

import sys
from typing import NoReturn

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


def end_process(error: BaseException, code: int) -> NoReturn:
    """End a process with the error's sentence and an exit code."""
    sys.stderr.write(f"{error}\n")
    raise SystemExit(code) from error
