"""Times of a condition: which texts are times, and the clock's fields in a zone.

Every time is converted to UTC, so that the binding's own accessors answer in UTC, as CEL says: for a time with an
offset they would answer in that offset. Zones are those of the pinned package `tzdata`, never the machine's, because
all deciders must agree.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from services.domain.policy.cel_tokens import Token, only_text, string_value

ACCESSORS = frozenset(
    {
        *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours"),
        *("getMinutes", "getSeconds", "getMilliseconds"),
    }
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# From the year 1 to the end of the year 9999.
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]{1,32}))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_NANOSECOND_DIGITS = 9
_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")

Tokens = tuple[Token, ...]


def checked_timestamp(value: object) -> str | None:
    """The time in UTC in the binding's form, if CEL accepts the value as one; else None, which no function accepts.

    A text is RFC 3339 with `T`, and `Z` or an offset; a whole number is seconds since 1970. The binding would accept
    spaces and lower-case letters, a second 60, and the year 0.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _written(_EPOCH + timedelta(seconds=value)) if _FIRST_S <= value <= _LAST_S else None
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        year, month, day, hour, minute, second = map(int, found.groups()[:6])
        at = datetime(year, month, day, hour, minute, second, tzinfo=_offset(found.group(8)))
        return _written(at.astimezone(UTC), (found.group(7) or "")[:_NANOSECOND_DIGITS])
    except (ValueError, OverflowError):
        return None


def _written(at: datetime, fraction: str = "") -> str:
    return at.replace(tzinfo=None).isoformat() + (f".{fraction}" if fraction else "") + "Z"


def _offset(text: str) -> tzinfo:
    found = _OFFSET.fullmatch(text)
    if found is None:
        return UTC
    hours, minutes = int(found.group(2)), int(found.group(3))
    if hours > 23 or minutes > 59:
        raise ValueError("an offset has at most 23 hours and 59 minutes")
    ahead = timedelta(hours=hours, minutes=minutes)
    return timezone(-ahead if found.group(1) == "-" else ahead)


def whole_seconds(at: datetime) -> int:
    """`int(time)`: the seconds since 1970, without their fraction."""
    return (at - _EPOCH) // timedelta(seconds=1)


def has_zone(tokens: Tokens, index: int) -> bool:
    """True if an accessor is called here with a quoted zone; with any other argument it is left to fail."""
    is_method = index > 1 and tokens[index].text in ACCESSORS and tokens[index - 1].text == "."
    if not is_method or index + 1 >= len(tokens) or tokens[index + 1].text != "(":
        return False
    return only_text(tokens, index + 1) is not None


def zones_of(tokens: Tokens) -> Iterator[str]:
    """The zones of accessor calls, one for each call."""
    for index in range(len(tokens)):
        if has_zone(tokens, index):
            yield string_value(tokens[index + 2].text)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The names of all zones."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """The zone of a name such as `Europe/Berlin` or an offset such as `+01:00`.

    Raises:
        ValueError: the zone does not exist.
    """
    if _OFFSET.fullmatch(name):
        return _offset(name)
    if name not in zone_names():
        raise ValueError(f"there is no time zone {name!r}")
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def in_zone(value: object, accessor: str, zone: str) -> int:
    """An accessor's answer in a zone; an error is a CEL error, which `error || true` absorbs."""
    if not isinstance(value, datetime):
        raise TypeError(f"{accessor}() takes a zone only for a time, such as now")
    return _shown(value.astimezone(zone_of(zone)), accessor)


def _shown(at: datetime, accessor: str) -> int:
    match accessor:
        case "getFullYear":
            return at.year
        case "getMonth":
            return at.month - 1
        case "getDate":
            return at.day
        case "getDayOfMonth":
            return at.day - 1
        case "getDayOfWeek":
            return at.isoweekday() % 7
        case "getDayOfYear":
            return at.timetuple().tm_yday - 1
        case "getHours":
            return at.hour
        case "getMinutes":
            return at.minute
        case "getSeconds":
            return at.second
    return at.microsecond // 1000
