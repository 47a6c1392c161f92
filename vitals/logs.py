"""How a process writes its log: one form for every role, no bearer token in a line, no flood of one sentence."""

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
    """Formats a record without the tokens that its message, arguments or traceback hold, whoever logged it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return without_tokens(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, and how often it was kept back (`OnceInAWhile`)."""
        times = getattr(record, "kept_back", 0)
        said = super().formatMessage(record)
        return f"{said} (and {times} times more since it was last said)" if times else said


@dataclass(slots=True)
class _Said:
    at: float
    kept_back: int = 0


class OnceInAWhile(logging.Filter):
    """Lets a Kafka client say the same again only after a while, and then how often it was meant to be said.

    A role has many clients, and each tries many times a second to reach a broker that is away: together thousands of
    lines in which nothing else is found.
    """

    def __init__(self, while_s: float = REPEATED_AFTER_S) -> None:
        super().__init__("aiokafka")
        self._while_s = while_s
        self._said: OrderedDict[tuple[str, str, int], _Said] = OrderedDict()
        # A handler filters before it takes its own lock.
        self._lock = threading.Lock()

    @property
    def remembered(self) -> int:
        """How many sentences are remembered."""
        return len(self._said)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written; it carries how many like it were not."""
        # What is said below a warning may be as long as a request; nobody repeats it to be heard.
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
    """Write every logger's records of a level and above to the standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(OnceInAWhile())
    handler.setFormatter(TokenlessFormatter(FORM))
    logging.basicConfig(level=level, handlers=[handler])
