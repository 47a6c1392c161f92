"""The log lines of a process: one form for every role, no bearer tokens, no flood of one message."""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass

from schemas.token_text import without_tokens

FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"
REPEATED_AFTER_S = 10.0
SENTENCES_KNOWN = 1000


class TokenlessFormatter(logging.Formatter):
    """Formats every record without the tokens in its message, arguments or traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return without_tokens(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, with the number of suppressed repetitions (`OnceInAWhile`)."""
        times = getattr(record, "kept_back", 0)
        said = super().formatMessage(record)
        return f"{said} (and {times} times more since it was last logged)" if times else said


@dataclass(slots=True)
class _Said:
    at: float
    kept_back: int = 0


class OnceInAWhile(logging.Filter):
    """Suppresses repeated messages of Kafka clients for a while, and then adds the number of repetitions.

    A role has many clients, and each tries many times a second to reach a broker that is down: together thousands of
    lines that hide all others.
    """

    def __init__(self, while_s: float = REPEATED_AFTER_S) -> None:
        super().__init__("aiokafka")
        self._while_s = while_s
        self._said: OrderedDict[tuple[str, str, int], _Said] = OrderedDict()
        # Needed because a handler filters before it takes its own lock.
        self._lock = threading.Lock()

    @property
    def remembered(self) -> int:
        """The number of remembered messages."""
        return len(self._said)

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns True if a record is written; a written record gets the number of suppressed ones like it."""
        # Messages below a warning can be as long as a request, and are not repeated in floods.
        if record.levelno < logging.WARNING or not super().filter(record):
            return True
        with self._lock:
            return self._is_said(record)

    def _is_said(self, record: logging.LogRecord) -> bool:
        key = (record.name, str(record.msg), hash(repr(record.args)))
        said = self._said.get(key)
        if said is not None and 0 <= record.created - said.at < self._while_s:
            said.kept_back += 1
            return False
        record.kept_back = said.kept_back if said else 0
        self._said[key] = _Said(record.created)
        self._said.move_to_end(key)
        if len(self._said) > SENTENCES_KNOWN:
            self._said.popitem(last=False)
        return True


def log_to_stderr(level: str) -> None:
    """Write every logger's records of a level and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(OnceInAWhile())
    handler.setFormatter(TokenlessFormatter(FORM))
    logging.basicConfig(level=level, handlers=[handler])
