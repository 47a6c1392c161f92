"""The log lines of a process that people watch in a terminal: what a stranger sent is escaped in them."""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Literal

LOG_LEVEL: Literal["WARNING"] = "WARNING"
FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"
_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class EscapingFormatter(logging.Formatter):
    r"""Shows every control character of a record as `\u{…}`; only a traceback has several lines, all indented.

    An exception's text can have lines that look like records; none of them begins where a record does.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return _escaped(super().formatMessage(record))

    def formatException(self, ei: _Raised) -> str:
        """The traceback, whose exception can quote what was received."""
        return _by_line(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        """The stack."""
        return _by_line(super().formatStack(stack_info))


def _escaped(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)


def _by_line(text: str) -> str:
    return "\n".join(f"    {_escaped(line)}" for line in text.split("\n"))


def log_to_stderr() -> None:
    """Write every logger's records from `LOG_LEVEL` up to standard error, unless the program writes them itself."""
    root = logging.getLogger()
    if any(map(_is_of_program, root.handlers)):
        return
    if not root.handlers:
        root.setLevel(LOG_LEVEL)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EscapingFormatter(FORM))
    handler.setLevel(LOG_LEVEL)
    root.addHandler(handler)


def _is_of_program(handler: logging.Handler) -> bool:
    """Returns True if the program writes its log by this handler; `opentelemetry-instrument` adds one before it."""
    is_of_otel = type(handler).__module__.partition(".")[0] == "opentelemetry"
    return not (is_of_otel or isinstance(handler, logging.NullHandler))
