"""Codes in a text: account and phone numbers, wallets, keys and ids, wherever they are written and however spaced.

A code is a group of words with digits that has six of them or more; a word of sixteen characters or more that has a
digit; a word of 32 or more ASCII characters; an IBAN; and a dotted name, such as that of a host or file. Dates and
times of the day alone are none. Codes are in capitals and without what separates their groups.

References and invoices have short ones, anew in each text. Strong are those that name an account or a place by
themselves: an IBAN, ten digits or more, a word of twenty characters or more, a dotted name.
"""

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, groupby, islice
from operator import add
from string import ascii_uppercase
from typing import NamedTuple

from services.domain.ibans import iban_at
from services.domain.words import APART, TooManyWords, plain

# Only those that there are: an account number can be written as any other.
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d([-/.])(?:1[0-2]|0?[1-9])\1(?:3[01]|[12]\d|0?[1-9])(?:T(?=\d\d:))?(?!\d)"
    r"|(?<!\d)(?:(?:3[01]|[12]\d|0?[1-9])([./])(?:1[0-2]|0?[1-9])\2|(?:1[0-2]|0?[1-9])/(?:3[01]|[12]\d|0?[1-9])/)"
    r"(?:19|20)\d\d(?!\d)"
    r"|(?<![\d:])(?:2[0-4]|[01]?\d):[0-5]\d(?::[0-6]\d(?:\.\d+)?)?(?!\d)"
)
_DASHES = re.compile("[\u2010-\u2015\u2212\u2e3a\u2e3b]")
# They are looked for by their digits: most texts have few.
_IBAN_BEGINS = re.compile(r"[0-9]{2}(?<=[A-Z]{2}[0-9]{2})")
_GOES_ON = re.compile(r"[^\W_]")
# Labels with dots between them. A text may have tens of thousands, so none is looked at twice (`++`).
_LABELS = re.compile(r"(?<![\w-])[\w-]++(?:\\?\.[\w-]++)++")
# Up to the last label, which is no number, and no single letter, as in `e.g.`
_DOTTED = re.compile(r".+\.(?:XN--[\w-]+|[^\W\d_]{2,}\d?|7Z|H5|M3U8|M4[AV]|P12|P7[BCMS])(?![^\W_])")
_IP = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)")
# As `inet_aton` reads it: one number or more, some of them hexadecimal.
_HEX_IP = re.compile(
    r"(?<![\w.])(?:0X[0-9A-F]{7,8}|(?=[\d.]*0X)(?:0X[0-9A-F]{1,8}|\d{1,8})(?:\.(?:0X[0-9A-F]{1,8}|\d{1,8})){1,3})"
    r"(?!\w|\.\w)"
)
_HEX = r"[0-9A-F]{1,4}(?::[0-9A-F]{1,4})*"
_IPV6 = re.compile(rf"(?<![\w:])(?:{_HEX}::(?:{_HEX})?|(?:[0-9A-F]{{1,4}}:){{7}}[0-9A-F]{{1,4}})(?![\w:])")
_WORD, _BETWEEN = re.compile(r"[^\W_]+"), re.compile(r"[\W_]+")
_MAY_BE = re.compile(r"[\d.]")
# Neighbouring words with digits, from the first digit on, whatever up to six characters stand between them.
_NEIGHBOURS = re.compile(r"\d[^\W_]*+(?:(?:[^\w\x00]|_){1,6}+[^\W\d_]*+\d[^\W_]*+)*+")
# What stands between two values rather than within one: then the words are only compared as one. Numbers with a comma
# and a space between them are more often a list.
_LOOSE = re.compile(r"""[,;:.!?]['" ]|['"][,;:]|[ ][+=|][ ]|[ ]\+|[-=]>""")
# Unless they are as long as each other, as the groups of one number are, and no years.
_YEAR = re.compile(r"(?:19|20)\d\d")
EQUALS_MIN, EQUAL_DIGITS_MIN = 3, 4
DIGITS_MIN, MIXED_MIN, LETTERS_MIN = 6, 16, 32
STRONG_DIGITS_MIN, STRONG_MIN = 10, 20
# An account, and a wallet, in a word.
_BARE = re.compile(rf"\d{{{STRONG_DIGITS_MIN},}}|0X[0-9A-F]{{40}}")
_LETTERS = re.compile(rf"(?<![^\W_])[A-Z]{{{LETTERS_MIN},}}(?![^\W_])")
# So many places of a text are looked at that could begin one; the digits after them are found in any case.
IBANS_MAX = 500
# So many neighbouring groups are compared as one code, and so many are looked at together; the words with digits that
# are looked at in one text: each is compared in several runs.
RUN_MAX, GROUP_MAX, WORDS_MAX = 6, 32, 4_096
# The codes of shorter neighbouring words are remembered.
REMEMBERED_CHARS = 32
# Other full stops between the labels of a name; beside no ASCII they end a sentence.
_STOP = re.compile("(?<=[A-Za-z0-9])[\u3002\uff61]|[\u3002\uff61](?=[A-Za-z0-9])")


class Code(NamedTuple):
    """A code; `parts` are all that it is compared by: each run of its groups that could be a code of its own."""

    text: str
    is_strong: bool
    parts: tuple[str, ...]

    @property
    def strong_parts(self) -> list[str]:
        """The parts within its text that would be strong codes by themselves."""
        if len(self.parts) == 1:
            return [*self.parts] if self.is_strong else []
        return [part for part in self.parts if _is_strong(part) and part in self.text]


def codes_in(text: str) -> Iterator[Code]:
    """The codes in a text; some of them more than once.

    Raises:
        TooManyWords: the text is too long, or has too many words with digits.
    """
    if len(text) < LETTERS_MIN and text.isascii() and not _MAY_BE.search(text):
        # Most values are such texts, and each verdict looks at all of a call.
        return
    names, rest = _names(_written(plain(text)))
    for name in dict.fromkeys(names):
        yield Code(name, True, (name,))
    for codes in _numbers(rest):
        yield from codes


def parts_in(text: str, most: int) -> Iterator[Sequence[str]]:
    """The codes in a plain text (`plain`), and all that they are compared by: a few at a time.

    Args:
        text: the text.
        most: no more than so many are looked at.

    Raises:
        TooManyWords: it has more, or too many words with digits.
    """
    names, rest = _names(_written(text))
    # A name is a code, and what it is compared by.
    left = most
    for found in chain((names,), map(_parts_of, _numbers(rest))):
        left -= len(found)
        if left < 0:
            raise TooManyWords
        yield found


def _parts_of(codes: Sequence[Code]) -> Sequence[str]:
    return list(dict.fromkeys(part for code in codes for part in (code.text, *code.parts)))


def _written(text: str) -> str:
    """A plain text in capitals, with one kind of stops, dashes and spaces."""
    text = " ".join(text.split())
    if text.isascii():
        return text.upper()
    text = _STOP.sub(".", text)
    # Such as Arabic digits, and those in circles.
    for one in set(text).difference(string.printable):
        if (value := unicodedata.digit(one, None)) is not None:
            text = text.replace(one, str(value))
    # Capitals of ASCII alone: those of other letters can be those of another name.
    whole = _DASHES.sub("-", text).encode("utf-8", "surrogatepass")
    return whole.upper().decode("utf-8", "surrogatepass")


def _names(written: str) -> tuple[list[str], str]:
    """The codes that name an account or a place by themselves, and the text without those that are IBANs."""
    names, rest, at = [], [], 0
    for found in islice(_IBAN_BEGINS.finditer(written), IBANS_MAX):
        begin = found.start() - 2
        iban, end = iban_at(written, begin)
        names += [iban] if iban else []
        # One that ends within a group, as before a currency, stays: the group may be another code.
        if iban and begin >= at and not _GOES_ON.match(written, end):
            rest.append(written[at:begin])
            at = end
    written = APART.join([*rest, written[at:]])
    # None of the others has a space in it: only what they may be in is searched.
    pieces = written.replace(APART, " ").split(" ") if "." in written or ":" in written else []
    if "." in written:
        dotted = " ".join([piece for piece in pieces if "." in piece])
        names += [name[0].replace("\\", "") for name in map(_DOTTED.match, _LABELS.findall(dotted)) if name]
        names += _IP.findall(dotted)
    if "0X" in written:
        names += _HEX_IP.findall(written)
    if ":" in written:
        names += _IPV6.findall(" ".join([one for one in pieces if ":" in one and one.count(":") > 1]))
    return names, written


def _numbers(written: str) -> Iterator[Sequence[Code]]:
    """The codes of neighbouring words with digits, and long words of letters, in the order of the text."""
    letters = _long_words(written)
    long_word = next(letters, None)
    waiting: Sequence[Code] = ()
    left = WORDS_MAX
    for found in _NEIGHBOURS.finditer(written):
        begin = found.start()
        while begin and written[begin - 1].isalnum():
            begin -= 1
        while long_word is not None and long_word.start() < begin:
            yield (_code_of(long_word.group()),)
            long_word = next(letters, None)
        text = written[begin : found.end()]
        groups = _of_few(text) if len(text) <= REMEMBERED_CHARS else _of_neighbours(text, left + 1)
        for words, codes in groups:
            if waiting and left:
                yield waiting
            left -= words
            if left < 0:
                raise TooManyWords
            waiting = codes
    while long_word is not None:
        yield (_code_of(long_word.group()),)
        long_word = next(letters, None)
    if waiting:
        yield waiting


def _long_words(written: str) -> Iterator[re.Match[str]]:
    pieces = [piece for piece in written.replace(APART, " ").split(" ") if len(piece) >= LETTERS_MIN]
    return _LETTERS.finditer(written) if _LETTERS.search(" ".join(pieces)) else iter(())


@lru_cache(maxsize=4_096)
def _of_few(text: str) -> Sequence[tuple[int, Sequence[Code]]]:
    """See `_of_neighbours`. Most are dates and amounts, many times in one text and in others."""
    return tuple(_of_neighbours(text))


def _of_neighbours(text: str, most: int = WORDS_MAX) -> Iterator[tuple[int, Sequence[Code]]]:
    """How many neighbouring words with digits are looked at together, and their codes: of each such group.

    Args:
        text: the words, with what stands between them.
        most: no more words than these are looked at.
    """
    if text.isalnum():
        yield 1, (_code_of(text),) if _is_code(text) else ()
        return
    if len(text) >= 2 * most:
        *_, last = islice(_WORD.finditer(text), most)
        text = text[: last.end()]
    words = _WORD.findall(text)
    if len(words) <= GROUP_MAX and not _is_code("".join(words)):
        yield len(words), ()
        return
    between = _BETWEEN.findall(text)
    in_date = _in_dates(text, words, between)
    is_tight = [_LOOSE.search(one) is None for one in between]
    # What is written across the end of a group is in the next one, too.
    for at in range(0, max(1, len(words) - RUN_MAX), GROUP_MAX - RUN_MAX):
        group = slice(at, at + GROUP_MAX)
        yield len(words[group]), _of_group(words[group], in_date[group], is_tight[group])


def _in_dates(text: str, words: Sequence[str], between: Sequence[str]) -> list[bool]:
    """Whether each of some neighbouring words begins in a date or a time; no date goes beyond such words."""
    dates = [date.span() for date in _DATE.finditer(text)]
    if not dates:
        return [False] * len(words)
    begins = accumulate(map(len, map(add, words, between)), initial=0)
    at, found = 0, []
    for begin, _ in zip(begins, words, strict=False):
        while at < len(dates) and dates[at][1] <= begin:
            at += 1
        found.append(at < len(dates) and dates[at][0] <= begin)
    return found


def _of_group(words: Sequence[str], in_date: Sequence[bool], is_tight: Sequence[bool]) -> tuple[Code, ...]:
    """The codes of words that are looked at together.

    Args:
        words: the words.
        in_date: whether each of them begins in a date.
        is_tight: whether each is surely one code with the next one.
    """
    whole = "".join(words)
    if not _is_code(whole) or all(in_date):
        return ()
    parts = tuple(dict.fromkeys((*_runs(words, whole), whole)))
    parts = _with_bare(parts) if _BARE.search(whole) else parts
    found = [text for text in _tight(words, in_date, is_tight) if _is_code(text)]
    found = found or list(_of_equals(words, in_date))
    return tuple(Code(text, _is_strong(text), parts) for text in found) or (Code(whole, False, parts),)


def _tight(words: Sequence[str], in_date: Sequence[bool], is_tight: Sequence[bool]) -> Iterator[str]:
    """Words that are surely one code, joined: without dates, and with those that stand in the middle of a code."""
    last = len(words) - 1
    ends = [at for at in range(len(words)) if at == last or not is_tight[at]]
    for begin, end in zip([0, *(at + 1 for at in ends)], ends, strict=False):
        group = range(begin, end + 1)
        for is_date, found in groupby(group, in_date.__getitem__):
            if not is_date:
                yield "".join([words[at] for at in found])
        own = [at for at in group if not in_date[at]]
        if (
            own
            and any(in_date[own[0] : own[-1]])
            and _digits("".join([words[at] for at in own])) >= DIGITS_MIN
        ):
            yield "".join(words[own[0] : own[-1] + 1])


def _of_equals(words: Sequence[str], in_date: Sequence[bool]) -> Iterator[str]:
    """Numbers of as many digits each, the last one of fewer, joined; without dates and years."""
    group: list[str] = []
    for word, is_date in zip(words, in_date, strict=True):
        is_number = word.isdigit() and not is_date
        if is_number and group and len(word) == len(group[-1]) == len(group[0]):
            group.append(word)
            continue
        if is_number and group and len(word) < len(group[0]) == len(group[-1]):
            group.append(word)
            word = ""
        yield from _joined_equals(group)
        group = [word] if is_number and len(word) >= EQUAL_DIGITS_MIN else []
    yield from _joined_equals(group)


def _joined_equals(group: Sequence[str]) -> Iterator[str]:
    if len(group) >= EQUALS_MIN and not all(map(_YEAR.fullmatch, group)):
        yield "".join(group)


def _runs(words: Sequence[str], whole: str) -> Iterator[str]:
    """The codes of a few neighbouring words; `whole` are all of them, joined."""
    ends = list(accumulate(map(len, words), initial=0))
    digits_before = list(accumulate(map(_digits, words), initial=0))
    for first in range(len(words)):
        begin, enough = ends[first], digits_before[first] + DIGITS_MIN
        for last in range(first + 1, min(first + RUN_MAX, len(words)) + 1):
            if digits_before[last] >= enough or ends[last] - begin >= MIXED_MIN:
                # So is every longer run.
                yield from [whole[begin:end] for end in ends[last : first + RUN_MAX + 1]]
                break


def _code_of(text: str) -> Code:
    return Code(text, _is_strong(text), _with_bare((text,)))


def _with_bare(parts: tuple[str, ...]) -> tuple[str, ...]:
    """With what is left of each without the letters around it: `EUR` or `konto` can be written without a space."""
    mixed = [part for part in parts if not part.isdigit() and _BARE.search(part)]
    bare = [one for part in mixed for one in (part.strip(ascii_uppercase), *_BARE.findall(part))]
    return tuple(dict.fromkeys((*parts, *filter(_is_strong, bare)))) if bare else parts


def _is_strong(text: str) -> bool:
    return len(text) >= STRONG_MIN or _digits(text) >= STRONG_DIGITS_MIN


def _is_code(text: str) -> bool:
    return len(text) >= MIXED_MIN or _digits(text) >= DIGITS_MIN


def _digits(text: str) -> int:
    return len(text) if text.isdigit() else sum(map(str.isdigit, text))
