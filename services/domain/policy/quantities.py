"""Amounts in a short text, with their unit and without: `$11`, `10 EUR`, `3h30m`, `5.000`.

No list of units is complete, in all languages. So the unit is all that stands around a number, and a text of which it
is not known that its number counts nothing, such as a house number, has the form of an amount, too. Nor is any list
complete of what looks like an id: only its letters are left out.
"""

import math
import re
from collections.abc import Iterable, Sequence

from services.domain.policy.class_values import magnitude, value_of
from services.domain.policy.written_numbers import written_number
from services.domain.words import with_digits

# A longer text is a sentence.
MAX_CHARS, MAX_WORDS = 64, 5
_NUMBER = re.compile(
    # Not that of square and cubic metres.
    r"(?!(?<=m)[23](?![^\W_]))"
    r"(?:0[xX][0-9A-Fa-f]+(?![^\W_])|\d(?:[.,'’_ ]?\d)*+(?:\.?[eE][-+]?\d{1,3}(?![^\W_]))?)"
)
# In an id letters can follow, such as a unit.
_IN_NAME = re.compile(_NUMBER.pattern.replace(r"{1,3}(?![^\W_])", r"{1,3}(?=[^\W\d_]*(?![^\W_]))"))
_BETWEEN = re.compile(r"[.,'’_ ]")
# Ids that are drawn by chance have fewer letters between their numbers.
_DURATION_IN_WORDS = re.compile(r"(?:\d+[^\W\d_]{3,})+\d*")
_DEVICE = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])")
_BEFORE_EXPONENT = re.compile(r"(?P<zeros>[^1-9]*+)(?P<digits>[^eE]*+)(?P<exponent>.*)")
_DIGIT = re.compile(r"\d")
_HEXADECIMAL = re.compile(r"0[xX]")
# Dates, and times of the day.
_CLOCK = r"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
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


def amounts_in(text: str) -> set[str]:
    """The terms of the numbers in a text of up to `MAX_CHARS` characters.

    A text of a few words that has one outside of ids and paths may be an amount: its term is the text with the power
    of ten in place of each number; its form, if programs read a number differently. Any other text has the greatest
    number, and each id and path the powers of ten in it: an amount can be written like an id.
    """
    text, names = with_digits(text), list[str]()

    def left_out(name: re.Match[str]) -> str:
        names.append(name[0])
        return " "

    rest = _NUMBERED.sub(left_out, _PATH.sub(left_out, _TIME.sub(" ", _DEVICE.sub(" ", text))))
    rest = _WORD.sub(lambda word: left_out(word) if _is_id(word[0]) else word[0], rest)
    found = _sizes_of(names)
    if len(_LETTERS.findall(rest)) > MAX_WORDS:
        return found | _greatest(rest)
    return found | {amount_term(rest)} if _NUMBER.search(rest) else found


def amount_term(text: str) -> str:
    """A short text with the power of ten in place of each number; its form, if programs read a number differently."""
    return "~" + value_of(_NUMBER.sub(_size, " ".join(text.split())), safe="$+,:/'")


def _is_id(word: str) -> bool:
    return _TWO_NUMBERS.search(word) is not None and _DURATIONS.fullmatch(word) is None


def _sizes_of(names: Sequence[str]) -> set[str]:
    """The powers of ten in ids and paths: all of what is written like durations, otherwise the greatest."""
    durations = [name for name in names if _DURATION_IN_WORDS.fullmatch(name)]
    found = {_term(map(_size_in_name, _IN_NAME.finditer(name))) for name in durations}
    return found | _greatest("\n".join(name for name in names if name not in durations))


def _greatest(text: str) -> set[str]:
    """The greatest number in a text as programs can read them: `1.234` is one, and a thousand."""
    numbers = list(_IN_NAME.finditer(text))
    return {_term([_size_in_name(max(numbers, key=power))]) for power in (_most, _least) if numbers}


def _term(sizes: Iterable[str]) -> str:
    return f"~#{value_of('-'.join(sizes), safe='+,')}"


def _size_in_name(number: re.Match[str]) -> str:
    # Zeros before a number make no other number of it: `U012AB3CD`.
    return f"1e{max(0, len(number[0].lstrip('0')) - 1)}" if number[0].isdecimal() else _size(number)


def _most(number: re.Match[str]) -> float:
    if _HEXADECIMAL.match(number[0]):
        return len(number[0])
    digits, _, exponent = number[0].lower().partition("e")
    return len(_BETWEEN.sub("", digits).lstrip("0")) + int(exponent or 0)


def _least(number: re.Match[str]) -> float:
    size = written_number(number[0])
    return _most(number) if size is None else math.log10(abs(size) or 1e-9) + 1


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
