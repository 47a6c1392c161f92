"""Codes in a text: account and phone numbers, wallets, keys and ids, wherever they are written and however spaced.

A code is a group of words with digits that has six of them or more; a word of sixteen characters or more that has a
digit; a word of 32 or more ASCII characters; an IBAN; and a dotted name, such as that of a host or file. Dates and
times of the day alone are none. Codes are in capitals and without what separates their groups.

References and invoices have short ones, anew in each text. Strong are those that name an account or a place by
themselves: an IBAN, ten digits or more, a word of twenty characters or more, a dotted name.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from services.domain.words import TooManyWords, plain

_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d([-/.])\d\d?\1\d\d?(?:T(?=\d\d:))?(?!\d)|(?<!\d)\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?!\d)"
)
_SPACES = re.compile(r"\s+")
_DASHES = re.compile("[\u2010-\u2015\u2212\u2e3a\u2e3b]")
_IBAN_BEGINS = re.compile(r"(?<![A-Z0-9])[A-Z]{2}\d\d(?=[ .-]?[A-Z0-9])")
# Labels with dots between them. A text may have tens of thousands, so none is looked at twice (`++`).
_LABELS = re.compile(r"(?<![\w-])[\w-]++(?:\\?\.[\w-]++)++")
# Of these, up to the last label that is no number, and no single letter, as in `e.g.`
_DOTTED = re.compile(r".+\.(?:XN--[\w-]+|[^\W\d_]{2,}\d?)(?![^\W_])")
_IP = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)")
_HEX = r"[0-9A-F]{1,4}(?::[0-9A-F]{1,4})*"
_IPV6 = re.compile(rf"(?<![\w:])(?:{_HEX}::(?:{_HEX})?|(?:[0-9A-F]{{1,4}}:){{7}}[0-9A-F]{{1,4}})(?![\w:])")
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_MAY_BE = re.compile(r"[\d.]")
# What stands between the groups of one code; and, where values are only compared, between those that may be one.
_TIGHT = frozenset(("", " ", ".", "-", "/", "(", ")", ") ", " (", "-(", ")-"))
_WIDE = _TIGHT | frozenset(
    (",", ", ", "_", ":", ": ", " - ", "#", "+", " +", "\u00b7", "*", "|", " | ", "\\", ";", "; ", "=", " = ")
)
DIGITS_MIN, MIXED_MIN, LETTERS_MIN = 6, 16, 32
STRONG_DIGITS_MIN, STRONG_MIN = 10, 20
# ISO 13616.
IBAN_MIN, IBAN_MAX = 15, 34
# So many places of a text are looked at that could begin one; the digits after them are found in any case.
IBANS_MAX = 500
# So many neighbouring groups are compared as one code, and so many are looked at together; the words with digits that
# are looked at in one text: each is compared in several runs.
RUN_MAX, GROUP_MAX, WORDS_MAX = 6, 32, 4_096
# Other full stops between the labels of a name.
_STOPS = {ord(stop): "." for stop in "\u3002\uff61\uff0e"}
_LARGE = str.maketrans(ascii_lowercase, ascii_uppercase)
# Between texts that have nothing to do with each other.
APART = "\x00"


class Code(NamedTuple):
    """A code; `parts` are all that it is compared by: each run of its groups that could be a code of its own."""

    text: str
    is_strong: bool
    parts: tuple[str, ...]


class _Word(NamedTuple):
    text: str
    start: int
    end: int
    in_date: bool


def codes_in(text: str) -> Iterator[Code]:
    """The codes in a text; some of them more than once.

    Raises:
        TooManyWords: the text is too long, or has too many words with digits.
    """
    if len(text) < LETTERS_MIN and text.isascii() and not _MAY_BE.search(text):
        # Most values are such texts, and each verdict looks at all of a call.
        return
    # Capitals of ASCII alone: those of other letters can be those of another name.
    written = _DASHES.sub("-", _SPACES.sub(" ", plain(text).translate(_STOPS))).translate(_LARGE)
    rest, at = [], 0
    for begin in islice(_IBAN_BEGINS.finditer(written), IBANS_MAX):
        if begin.start() >= at and (end := _iban_end(written, begin.start())):
            iban = "".join(filter(str.isalnum, written[begin.start() : end]))
            yield Code(iban, True, (iban,))
            rest.append(written[at : begin.start()])
            at = end
    written = APART.join([*rest, written[at:]])
    dotted = [found for labels in _LABELS.findall(written) if (found := _DOTTED.match(labels))]
    for found in (*dotted, *_IP.finditer(written), *_IPV6.finditer(written)):
        name = found.group().replace("\\", "")
        yield Code(name, True, (name,))
    yield from _numbers(written)


def _numbers(written: str) -> Iterator[Code]:
    dates = _DATE.finditer(written)
    date = next(dates, None)
    group: list[_Word] = []
    left = WORDS_MAX
    for found in _WORD.finditer(written):
        while date is not None and date.end() <= found.start():
            date = next(dates, None)
        text = found.group()
        if not _DIGIT.search(text):
            if len(text) >= LETTERS_MIN and text.isascii():
                yield Code(text, True, (text,))
            continue
        word = _Word(text, *found.span(), date is not None and date.start() <= found.start())
        left -= 1
        if left < 0:
            raise TooManyWords
        if group and (len(group) >= GROUP_MAX or written[group[-1].end : word.start] not in _WIDE):
            yield from _of_group(written, group)
            group = []
        group.append(word)
    yield from _of_group(written, group)


def _of_group(written: str, group: Sequence[_Word]) -> Iterator[Code]:
    """The codes of neighbouring words with digits."""
    if all(word.in_date for word in group):
        return
    whole = "".join(word.text for word in group)
    parts = tuple(
        dict.fromkeys((*_runs([word.text for word in group]), *((whole,) if _is_code(whole) else ())))
    )
    found = [text for text in _tight(written, group) if _is_code(text)]
    if not found and parts:
        yield Code(whole, False, parts)
    for text in found:
        is_strong = len(text) >= STRONG_MIN or _digits(text) >= STRONG_DIGITS_MIN
        yield Code(text, is_strong, parts)


def _tight(written: str, group: Sequence[_Word]) -> Iterator[str]:
    """The words of a group that are surely one code, joined; without dates."""
    joined = ""
    for word, following in pairwise([*group, None]):
        if word is None or word.in_date:
            continue
        joined += word.text
        goes_on = following is not None and not following.in_date
        if not (goes_on and following is not None and written[word.end : following.start] in _TIGHT):
            yield joined
            joined = ""


def _runs(words: Sequence[str]) -> Iterator[str]:
    for first in range(len(words)):
        for count in range(1, RUN_MAX + 1):
            run = "".join(words[first : first + count])
            if first + count <= len(words) and _is_code(run):
                yield run


def _is_code(text: str) -> bool:
    return len(text) >= MIXED_MIN or _digits(text) >= DIGITS_MIN


def _iban_end(written: str, start: int) -> int:
    """Where the IBAN that begins here ends; 0 if none does: its check digits must be right, whatever follows it."""
    compact, at = "", start
    ends = 0
    while at < len(written) and len(compact) < IBAN_MAX:
        character = written[at]
        if character in " -.":
            at += 1
            continue
        if not (character.isascii() and character.isalnum()):
            break
        compact, at = compact + character, at + 1
        is_end = at == len(written) or not (written[at].isascii() and written[at].isalnum())
        if is_end and len(compact) >= IBAN_MIN and _is_checked(compact):
            ends = at
    return ends


def _is_checked(iban: str) -> bool:
    """ISO 7064, modulo 97: letters count from 10."""
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97 == 1


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))
