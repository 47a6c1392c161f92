"""How a process writes its log: one form for every role, and no bearer token in any line."""

from __future__ import annotations

import logging
import sys

from schemas.token_text import without_tokens

FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"


class TokenlessFormatter(logging.Formatter):
    """Formats a record without the tokens that its message, arguments or traceback hold, whoever logged it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return without_tokens(super().format(record))


def log_to_stderr(level: str) -> None:
    """Write every logger's records of a level and above to the standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TokenlessFormatter(FORM))
    logging.basicConfig(level=level, handlers=[handler])
