"""Amounts in a short text, with their unit and without: `$11`, `10 EUR`, `3h30m`, `5.000`.

No list of units is complete, in all languages. So the unit is all that stands around a number, and a text of which it
is not known that its number counts nothing, such as a house number, has the form of an amount, too.
"""

import re

from services.domain.policy.class_values import magnitude, value_of
from services.domain.policy.written_numbers import written_number

# A longer text is a sentence.
MAX_CHARS, MAX_WORDS = 64, 5
_NUMBER = re.compile(
    # Not that of square and cubic metres.
    r"(?!(?<=m)[23](?![^\W_]))"
    r"(?:0[xX][0-9A-Fa-f]+(?![^\W_])|\d(?:[.,'’_ ]?\d)*+(?:\.?[eE][-+]?\d{1,3}(?![^\W_]))?)"
)
_BEFORE_EXPONENT = re.compile(r"(?P<zeros>[^1-9]*+)(?P<digits>[^eE]*+)(?P<exponent>.*)")
_DIGIT = re.compile(r"\d")
_HEXADECIMAL = re.compile(r"0[xX]")
# Dates, and times of the day.
_CLOCK = r"\d\d?:\d\d(?::\d\d(?:\.\d+)?)?"
_TIME = re.compile(
    rf"(?<![\w.-])(?:19|20)\d\d([-/.])\d\d?\1\d\d?(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?(?![\w.-])"
    rf"|(?<![\w.:-]){_CLOCK}(?![\w.:-])"
)
_WORD, _LETTERS = re.compile(r"[^\W_]+"), re.compile(r"[^\W\d_]+")
# As `v2`, `user42` and `report-17`; but `EUR10` is an amount, `m2` a unit, and `e10` after a point an exponent.
_NUMBERED = re.compile(
    r"(?<![^\W_])(?<!\d\.)(?![cdkm]?m[23](?![^\W_]))(?:[a-z]+[-_#]|[a-z]|[^\W\d_]{5,}[-_#]?)\d+(?![^\W_])"
)
# Two numbers in a word are an id, such as `U012AB3CD`, but for durations and products.
_TWO_NUMBERS = re.compile(r"\d[^\W\d_]++\d")
_DURATIONS = re.compile(
    r"P?T?(?:\d+(?:ms|[uµμ]s|ns|mins?|secs?|mon|mo|hrs?|[ywdhmsx])T?)+\d*|\d+e\d{1,3}|0x[0-9a-f]+",
    re.IGNORECASE,
)
# A word that is a path of files, and no unit such as `EUR/day`.
_PATH = re.compile(r"(?<!\S)(?:(?:\.{0,2}|~|[A-Za-z]:)[/\\][^\W\d_]|[^\s\d/\\]+[/\\][^\s\d/\\]*[/\\])\S*")


def has_amount(text: str) -> bool:
    """True if a text may be an amount: it is short, and has a number in it that is no part of a date, id or path."""
    rest = _without_names(text) if len(text) <= MAX_CHARS else ""
    return _NUMBER.search(rest) is not None and len(_LETTERS.findall(rest)) <= MAX_WORDS


def amount_term(text: str) -> str:
    """The text with the power of ten in place of each number; its form, if programs read a number differently."""
    return "~" + value_of(_NUMBER.sub(_size, " ".join(_without_names(text).split())), safe="$+,:/'")


def _without_names(text: str) -> str:
    return _WORD.sub(_unless_id, _NUMBERED.sub(" ", _PATH.sub(" ", _TIME.sub(" ", text))))


def _unless_id(word: re.Match[str]) -> str:
    is_id = _TWO_NUMBERS.search(word[0]) is not None and _DURATIONS.fullmatch(word[0]) is None
    return " " if is_id else word[0]


def _size(number: re.Match[str]) -> str:
    size = written_number(number[0])
    if size is not None:
        return magnitude(size)
    if _HEXADECIMAL.match(number[0]):
        return f"0x{'f' * len(number[0][2:].lstrip('0'))}"
    # Each way of reading it has the same power of ten in all numbers of this form: `5.000` and `9.999`.
    found = _BEFORE_EXPONENT.fullmatch(number[0])
    if found is None:
        return number[0]
    return found["zeros"] + _DIGIT.sub("9", found["digits"]) + found["exponent"]
