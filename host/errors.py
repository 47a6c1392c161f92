"""What ends a process or a command until an operator acts: one sentence each, with an exit code."""

from __future__ import annotations

import sys
from typing import NoReturn

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3


class OperatorError(Exception):
    """What an operator has to act on; `str()` is one sentence that says what to do.

    Attributes:
        exit_code: of a process or command that it ends, where the role has no code of its own for everything.
    """

    exit_code = EXIT_UNREACHABLE


class SettingsRefused(OperatorError, ValueError):
    """A setting, or a file that one names, cannot be used; the message says which, and what to mend."""

    exit_code = EXIT_USAGE


class AddressTaken(OperatorError, OSError):
    """An address that was asked for cannot be listened on; the message says what to do."""

    exit_code = EXIT_USAGE


def end_process(error: BaseException, code: int) -> NoReturn:
    """End a process with the sentence of what keeps it from going on."""
    sys.stderr.write(f"{error}\n")
    raise SystemExit(code) from error
