"""The log lines of a process: one form for every role, no bearer tokens, no flood of one message."""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from host.errors import indented
from host.log_text import shown
from schemas.token_text import without_tokens

FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"
REPEATED_AFTER_S = 10.0
TELEMETRY = "opentelemetry."
VAULT = "gateway.vault."
VIEWS = "gateway.views"
# Of our own loggers, those that write a line for each request, or each attempt, that fails for the same reason.
OWN = (VAULT, VIEWS, "gateway.identity.authentication", "gateway.rest.well_known", "log.kafka.follower")
REPEATING = ("aiokafka", TELEMETRY, *OWN)
# Their values differ although the message is the same: numbers, or the step at which a database was found away.
OF_ANY_VALUES = (TELEMETRY, VAULT, VIEWS)
MESSAGES_KNOWN = 1000
TEXT = "text"
JSON = "json"
FORMATS = (TEXT, JSON)
UNWRITTEN = "a log record of %s, line %d, could not be written: %s"


class TokenlessFormatter(logging.Formatter):
    """Formats every record without the tokens and control characters in its message, arguments or traceback.

    Only the first line of a record begins in the first column: `ops.last_words` looks there for messages.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; further lines, as of a traceback, are indented."""
        return indented(shown(without_tokens(super().format(record))))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, with the number of suppressed repetitions (`RepeatedMessageFilter`)."""
        times = getattr(record, "suppressed", 0)
        line = super().formatMessage(record)
        return f"{line} (and {times} times more since it was last logged)" if times else line


class TokenlessHandler(logging.StreamHandler[TextIO]):
    """Writes records to a stream; of one that cannot be formatted it tells where it was made, and nothing in it.

    The standard library would print its message and its arguments as they are.
    """

    def handleError(self, record: logging.LogRecord) -> None:
        """Tell of a record for which `emit` has just caught an error."""
        error = sys.exc_info()[1]
        values = (record.filename, record.lineno, type(error).__name__)
        told = logging.LogRecord(
            record.name, logging.ERROR, record.pathname, record.lineno, UNWRITTEN, values, None
        )
        # The stream itself may be broken, there is no other, and a logging program must not fail by its log.
        with suppress(Exception):
            self.stream.write(self.format(told) + self.terminator)
            self.flush()


@dataclass(slots=True)
class _LastWritten:
    at: float
    suppressed: int = 0


class RepeatedMessageFilter(logging.Filter):
    """Suppresses repeated messages for a while, and then adds the number of repetitions.

    A role has many Kafka clients, and each tries many times a second to reach a broker that is down: together
    thousands of lines that hide all others. The exporters of spans and metrics do the same while a collector is down,
    each time with other numbers in the message, and the vault for each use of it while its database is away.
    """

    def __init__(self, interval_s: float = REPEATED_AFTER_S) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._last_written: OrderedDict[tuple[str, str, int], _LastWritten] = OrderedDict()
        # Needed because a handler filters before it takes its own lock.
        self._lock = threading.Lock()

    @property
    def remembered(self) -> int:
        """The number of remembered messages."""
        return len(self._last_written)

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns True if a record is written; a written record gets the number of suppressed ones like it."""
        # Messages below a warning can be as long as a request, and are not repeated in floods.
        if record.levelno < logging.WARNING or not record.name.startswith(REPEATING):
            return True
        with self._lock:
            return self._is_written(record)

    def _is_written(self, record: logging.LogRecord) -> bool:
        told = "" if record.name.startswith(OF_ANY_VALUES) else repr(record.args)
        key = (record.name, str(record.msg), hash(told))
        last = self._last_written.get(key)
        if last is not None and 0 <= record.created - last.at < self._interval_s:
            last.suppressed += 1
            return False
        record.suppressed = last.suppressed if last else 0
        self._last_written[key] = _LastWritten(record.created)
        self._last_written.move_to_end(key)
        if len(self._last_written) > MESSAGES_KNOWN:
            self._last_written.popitem(last=False)
        return True


def log_to_stderr(level: str, form: str = TEXT) -> None:
    """Write every logger's records of a level and above to standard error, as text or as JSON."""
    handler = TokenlessHandler(sys.stderr)
    handler.addFilter(RepeatedMessageFilter())
    handler.setFormatter(_formatter(form))
    logging.basicConfig(level=level, handlers=[handler])


def _formatter(form: str) -> logging.Formatter:
    if form != JSON:
        return TokenlessFormatter(FORM)
    # It imports structlog and OpenTelemetry, which text does without.
    from vitals.json_logs import JsonFormatter

    return JsonFormatter()
