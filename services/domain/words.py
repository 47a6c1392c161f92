"""Words of texts as digests of 8 bytes: enough to see that a value came from a text, in bounded memory."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import blake2b
from string import ascii_lowercase, ascii_uppercase

WORDS_MAX = 4_096
# Of a text beyond this, in UTF-8, no word is looked at: normal forms can be eighteen times as long.
TEXT_MAX_BYTES = 65_536
_SIZE = 8
# Chinese and Japanese are written without spaces: each of their characters is a word.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")


class TooManyWords(Exception):
    """There are more words than are kept."""


# Characters that nobody sees (Unicode's Default_Ignorable_Code_Point), and the marks of Arabic numbers.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def plain(text: str) -> str:
    """A text without regard to its form: as Unicode's NFKC, and without characters that nobody sees.

    Raises:
        TooManyWords: the text is too long.
    """
    if len(text) > TEXT_MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > TEXT_MAX_BYTES:
        raise TooManyWords
    return text if text.isascii() else _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))


def lowered(text: str) -> str:
    """A text in small letters, of ASCII alone: others turn into those of another name, such as the Kelvin sign."""
    return text.translate(_SMALL)


def words_of(text: str) -> frozenset[bytes]:
    """The words of a text, each as 64 bits of BLAKE2b.

    Raises:
        TooManyWords: the text is too long, or has more than `WORDS_MAX` words.
    """
    found = set(_WORD.findall(plain(text).casefold()))
    if len(found) > WORDS_MAX:
        raise TooManyWords
    return frozenset(
        blake2b(word.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest() for word in found
    )


def has_words(packed: bytes, words: Iterable[bytes]) -> bool:
    """True if all of some words are among packed ones."""
    return all(_has(packed, word) for word in words)


def with_words(packed: bytes, text: str) -> bytes:
    """Packed words with those of one more text, in their order.

    Raises:
        TooManyWords: see `words_of`; or there are more than `WORDS_MAX` together.
    """
    kept = [packed[at : at + _SIZE] for at in range(0, len(packed), _SIZE)]
    new = words_of(text).difference(kept)
    if len(kept) + len(new) > WORDS_MAX:
        raise TooManyWords
    return b"".join(sorted([*kept, *new])) if new else packed


def _has(packed: bytes, word: bytes) -> bool:
    places = range(0, len(packed), _SIZE)
    found = bisect_left(places, word, key=lambda at: packed[at : at + _SIZE])
    return found < len(places) and packed[places[found] : places[found] + _SIZE] == word
