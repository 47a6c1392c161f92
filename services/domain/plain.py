"""Texts in which all parsers of paths and URLs find the same segments.

One parser decodes percent signs, another several times, a third by tables of its own (`%u2215`, overlong UTF-8); one
folds full-width letters, one drops invisible characters, one treats a backslash as a slash. A test of a prefix only
means something if no parser reads the text differently.
"""

import re
import unicodedata
from functools import lru_cache

from schemas.display.characters import is_hidden

_ASCII = re.compile(r"[ -\[\]-~]*")
# Characters that look like dots and slashes, in addition to those that Unicode's own tables map to them.
_LIKE_DOTS_AND_SLASHES = frozenset(
    "\u00b7\u02d9\u0387\u0589\u05c3\u0660\u06d4\u06f0\u0701\u0702\u0b66\u1427\u2022\u2027\u2044\u2052\u2215\u2216"
    "\u2219\u2223\u22c5\u244a\u2571\u2572\u27cb\u27cd\u29f5\u29f6\u29f8\u29f9\u2e31\u2e33\u2e42\u3002\u3003\u3033"
    "\u2cc6\u30fb\u30ce\u31d3\u31d4\u4e36\u4e3f\ua4f8\ua4fa\ua4fb\ua60e\ua78f\ufe52\ufe68\uff61\uff65\U0001d16d"
)
_LETTERS = ("L", "M", "N")


def is_plain(text: str, percent: bool = False) -> bool:
    """True if a text has no characters that parsers of paths and URLs read differently.

    Args:
        text: a path or URL.
        percent: True if percent signs are allowed.
    """
    if "%" in text and not percent:
        return False
    return _ASCII.fullmatch(text) is not None or all(map(_is_plain_char, text))


@lru_cache(maxsize=4096)
def _is_plain_char(char: str) -> bool:
    if char.isascii():
        return char.isprintable() and char != "\\"
    if is_hidden(char) or char in _LIKE_DOTS_AND_SLASHES or unicodedata.category(char)[0] not in _LETTERS:
        return False
    # Full-width forms, numbers with a dot, fractions: a parser that folds them sees other characters.
    return unicodedata.normalize("NFKC", char) in (char, unicodedata.normalize("NFC", char))
