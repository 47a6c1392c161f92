"""Times that are written as texts: dates, times of the day, and words for them."""

import re

# Whatever else stands where a time is expected is a value: `* * * * *` for a job, `90d`, `now`.
MAX_TIME_CHARS = 64
_CLOCK = r"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:\.\d{1,9})?)?(?:Z|[+-][01]\d:?[0-5]\d)?"
_MONTH_NUMBER, _DAY_NUMBER = r"(?:1[0-2]|0?[1-9])", r"(?:3[01]|[12]\d|0?[1-9])"
# Without groups for the separators: those of a repeated atomic group are an error of Python 3.11 at some texts.
_DAY = (
    "|".join(rf"(?:19|20)\d\d{one}{_MONTH_NUMBER}(?:{one}{_DAY_NUMBER})?" for one in ("-", "/", r"\."))
    + rf"|(?:{_MONTH_NUMBER}[-/.]{_DAY_NUMBER}|{_DAY_NUMBER}[-/.]{_MONTH_NUMBER})[-/.](?:(?:19|20)\d\d|\d\d)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_NUMBERED = rf"{_DAY_NUMBER}(?:st|nd|rd|th)?"
_NEAR = r"this|next|last|today|tomorrow|yesterday"
_TIME = re.compile(
    rf"(?>(?>(?:{_DAY})(?:T{_CLOCK})?|{_CLOCK}|{_MONTH}|{_NUMBERED}(?= {_MONTH})|{_WEEKDAY}|{_NUMBERED}(?=[, ]|$)"
    rf"|\d{{1,2}} ?[ap]\.?m\.?|(?:19|20)\d\d|[ap]\.?m\.?|utc|gmt|at|-|{_NEAR}|to)(?:[\s,]+|$))*+",
    re.IGNORECASE,
)
# Numbers alone are no time: `30,5` where days are expected.
_IS_TIME = re.compile(
    rf"(?:{_DAY})|{_CLOCK}|(?<![^\W\d])(?:{_MONTH}|{_WEEKDAY})(?![^\W\d])|\d ?[ap]\.?m|\b(?:{_NEAR})\b",
    re.IGNORECASE,
)


def is_time(text: str) -> bool:
    """True if a text is a time and nothing else."""
    return is_made_of_times(text) and _IS_TIME.search(text) is not None


def is_made_of_times(text: str) -> bool:
    """True if it has nothing but parts of times, such as numbers of days."""
    return len(text) <= MAX_TIME_CHARS and _TIME.fullmatch(text) is not None
