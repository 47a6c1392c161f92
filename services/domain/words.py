"""Words of texts as digests of 8 bytes: enough to see that a value came from a text, in bounded memory."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase

WORDS_MAX = 4_096
# Between texts that have nothing to do with each other.
APART = "\x00"
# Of a text beyond this, in UTF-8, no word is looked at: normal forms can be eighteen times as long.
TEXT_MAX_BYTES = 65_536
_SIZE = 8
_HASH = blake2b(digest_size=_SIZE)
# Chinese and Japanese are written without spaces, and Korean joins particles to names: each character is a word.
_CHARACTERS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+")
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
_WORD = re.compile(r"[^\W_]+")
# Of ASCII: letters and digits in small letters, and spaces for everything else.
_WORDS_OF_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


class TooManyWords(Exception):
    """There are more words than are kept."""


# Characters that nobody sees (Unicode's Default_Ignorable_Code_Point), and the marks of Arabic numbers.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Nor these, but for spaces.
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
# Combining marks in a row, among others. Python puts them into their order in a time that grows with the square of
# their number, so that many are put into it before.
_MARKS = re.compile(r"[^\w\s\x00-\x7f]{32,}")
# The only letters whose compatible form is a mark: the voiced marks of halfwidth Katakana.
_MARKS_OF_KATAKANA = {"\uff9e": "\u3099", "\uff9f": "\u309a"}


def plain(text: str) -> str:
    """A text without regard to its form: as Unicode's NFKC, and without characters that nobody sees.

    Raises:
        TooManyWords: the text is too long.
    """
    return plain_texts(CONTROLS.sub("", text))


def plain_texts(text: str) -> str:
    """Several texts in one, with controls between them: likewise, but for controls.

    Raises:
        TooManyWords: the text is too long.
    """
    if len(text) > TEXT_MAX_BYTES or bytes_of(text) > TEXT_MAX_BYTES:
        raise TooManyWords
    if text.isascii():
        return text
    text = _UNSEEN.sub("", text)
    for letter, mark in _MARKS_OF_KATAKANA.items():
        text = text.replace(letter, mark)
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", _MARKS.sub(_in_order, text)))


def _in_order(found: re.Match[str]) -> str:
    """Characters in their compatible form, the marks between two others in canonical order (Unicode, D109)."""
    forms = {ord(one): unicodedata.normalize("NFKD", one) for one in set(found.group())}
    runs = groupby(found.group().translate(forms), lambda one: unicodedata.combining(one) > 0)
    # Those that are no marks all have class 0, and stay as they are.
    return "".join("".join(sorted(run, key=unicodedata.combining)) for _, run in runs)


def bytes_of(text: str) -> int:
    """The length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def lowered(text: str) -> str:
    """A text in small letters, of ASCII alone: others turn into those of another name, such as the Kelvin sign."""
    return text.translate(_SMALL)


def words_in(text: str) -> set[str]:
    """The words of a plain text (`plain`), each once."""
    if text.isascii():
        return set(text.translate(_WORDS_OF_ASCII).split())
    # Most words occur often: what stands between spaces is split once.
    text = with_digits(" ".join(set(text.casefold().split())))
    return {*"".join(_CHARACTERS.findall(text)), *_WORD.findall(_CHARACTERS.sub(" ", text))}


def with_digits(text: str) -> str:
    """A text with the digits of all scripts, such as Arabic ones, as those of ASCII."""
    values = {one: unicodedata.digit(one, None) for one in set(text) if not one.isascii()}
    digits = {ord(one): str(value) for one, value in values.items() if value is not None}
    return text.translate(digits) if digits else text


def words_of(text: str) -> frozenset[bytes]:
    """The words of a text, each as 64 bits of BLAKE2b.

    Raises:
        TooManyWords: the text is too long, or has more than `WORDS_MAX` words.
    """
    return digests_of(words_in(plain(text)))


def digests_of(words: set[str]) -> frozenset[bytes]:
    """Words as digests.

    Raises:
        TooManyWords: there are more than `WORDS_MAX`.
    """
    if len(words) > WORDS_MAX:
        raise TooManyWords
    digests = set()
    # No word has a line break.
    for word in "\n".join(words).encode("utf-8", "surrogatepass").split(b"\n") if words else ():
        # A copy is made in half the time of a new one.
        hashed = _HASH.copy()
        hashed.update(word)
        digests.add(hashed.digest())
    return frozenset(digests)


def has_words(packed: bytes, words: Iterable[bytes]) -> bool:
    """True if all of some words are among packed ones."""
    return all(_has(packed, word) for word in words)


def with_words(packed: bytes, words: frozenset[bytes]) -> bytes:
    """Packed words with more of them, in their order.

    Raises:
        TooManyWords: there are more than `WORDS_MAX` together.
    """
    kept = list(_unpacked(packed))
    new = words.difference(kept)
    if len(kept) + len(new) > WORDS_MAX:
        raise TooManyWords
    return b"".join(sorted([*kept, *new])) if new else packed


def _unpacked(packed: bytes) -> Iterator[bytes]:
    return (packed[at : at + _SIZE] for at in range(0, len(packed), _SIZE))


def _has(packed: bytes, word: bytes) -> bool:
    places = range(0, len(packed), _SIZE)
    found = bisect_left(places, word, key=lambda at: packed[at : at + _SIZE])
    return found < len(places) and packed[places[found] : places[found] + _SIZE] == word
