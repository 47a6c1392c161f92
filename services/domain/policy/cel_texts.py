"""The texts of `string()`: times and durations in CEL's form, and digits of doubles. The binding has neither."""

import math
import re
from datetime import timedelta
from decimal import Decimal

# CEL stores the nanoseconds of a duration in a 64-bit integer.
_LONGEST_US = 2**63 // 1000
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(h|ms|m|s|µs|us|ns)")
_UNIT_NS = {"h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "µs": 10**3, "us": 10**3, "ns": 1}


def double_text(value: float) -> str:
    """A double in the fewest digits that read as the same double, without an exponent: `98.7`, `500`, `1000000`.

    cel-go writes `1e+06`; the language's definition prescribes no form. A number of a call is a double, and a
    condition that compares its text means, for example, the digits of an account.
    """
    if not math.isfinite(value):
        raise TypeError("string() was given a number that is not finite")
    digits = format(Decimal(repr(value)), "f")
    return digits.rstrip("0").removesuffix(".") if "." in digits else digits


def time_text(written: str) -> str:
    """A time in UTC with `Z`, from the binding's text of it, without trailing zeros in the fraction."""
    at, _, fraction = written.removesuffix("Z").removesuffix("+00:00").partition(".")
    return at + _fraction(fraction) + "Z"


def span_text(span: timedelta, written: str, turned: str) -> str:
    """A duration in seconds, from the binding's texts of it and of its negative, which have its nanoseconds.

    Python's type has no nanoseconds, and the binding's text of a negative duration is wrong.

    Raises:
        ValueError: it is longer than CEL's longest duration, for which the binding's text would be wrong.
    """
    if abs(span) // timedelta(microseconds=1) >= _LONGEST_US:
        raise ValueError("string() was given a duration of more than 292 years")
    is_negative = written.startswith("-")
    nanoseconds = 0
    for part in _PART.finditer(turned if is_negative else written):
        whole, fraction, unit = int(part.group(1)), part.group(2) or "", _UNIT_NS[part.group(3)]
        nanoseconds += whole * unit + int(fraction or "0") * unit // 10 ** len(fraction)
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{'-' if is_negative else ''}{seconds}{_fraction(f'{rest:09}')}s"


def _fraction(digits: str) -> str:
    shown = digits.rstrip("0")
    return f".{shown}" if shown else ""
