"""Times as people type them: RFC 3339, a day, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from placet.parsing import TIME_EXAMPLE, parse_time

_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
# For errors: what is accepted.
FORMS = (
    f"an RFC 3339 time with an offset, such as {TIME_EXAMPLE}, a day (UTC), such as 2026-01-05, or how long ago,"
    " such as 24h or 7d"
)


def typed_time(text: str) -> str:
    """The RFC 3339 time that was typed: `90m`, `24h`, `7d` and the like are so long ago, a day is its begin in UTC.

    Raises:
        ValueError: it is no time.
        OverflowError: it is before the first year.
    """
    if ago := _AGO.fullmatch(text):
        at = datetime.now(timezone.utc) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return at.isoformat().replace("+00:00", "Z")
    if _DAY.fullmatch(text):
        text += "T00:00:00Z"
    parse_time(text)
    return text


def is_ahead(at: str) -> bool:
    """Returns True if a time is in the future."""
    return parse_time(at) > datetime.now(timezone.utc)
