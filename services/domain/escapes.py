r"""Texts as their reader has them: JSON within a text, and other languages, spell characters with a backslash."""

import re
from functools import lru_cache

from services.domain.words import CONTROLS

_HEX = "[0-9A-Fa-f]"
# Each is of at most twelve characters, so that no place of a text is looked at more often than that.
_ESCAPE = re.compile(
    # One character beyond the first 65,536, as JSON spells it.
    rf"\\u[Dd][89ABab]{_HEX}{{2}}\\u[Dd][C-Fc-f]{_HEX}{{2}}"
    rf"|\\(?:u{_HEX}{{4}}|x{_HEX}{{2}}|U{_HEX}{{8}}|[ux]\{{{_HEX}{{1,8}}\}}|[0-7]{{3}}|.)",
    re.DOTALL,
)
_SHORTEST = re.compile(rf"\\(?:u{_HEX}{{4}}|x{_HEX}{{2}}|.)")
_SPELT = re.compile(rf"\\(?:u{_HEX}{{4}}|x{_HEX}{{2}})")
_NUMBERED = re.compile(r"\\[uUx0-7]")
# As Python and Git write what is not ASCII: the bytes of its UTF-8.
_BYTES = re.compile(rf"(?:\\(?:x[89A-Fa-f]{_HEX}|[23][0-7]{{2}})){{2,}}")
_BYTE = re.compile(rf"x({_HEX}{{2}})|([0-7]{{3}})")
_SPACES = re.compile(r"\s")
_LAST = 0x10FFFF
_UNKNOWN = "\ufffd"


def unescaped(text: str) -> str:
    r"""A text with what its escapes stand for; it is not longer, also in UTF-8.

    `\uXXXX` (two of them for a pair of surrogates), `\xXX`, `\u{X}`, `\UXXXXXXXX` and `\ooo` are a character, a
    letter or digit is a space, as most are that stand for a control, and any other sign is itself.
    """
    return _ESCAPE.sub(_meaning_of, text) if "\\" in text else text


def in_utf8(text: str) -> str:
    r"""A text with the characters whose bytes in UTF-8 are spelt (`\303\274`, `\xc3\xbc`); it is not longer."""
    return _BYTES.sub(_decoded, text) if "\\" in text else text


def spaced(text: str) -> str:
    """The words of a text that may have an escape with a number in it, with each escape as if it was a space."""
    return " ".join([_SHORTEST.sub(" ", word) for word in _SPACES.split(text) if _NUMBERED.search(word)])


def without_spelt(text: str) -> str:
    """A text with a space for each letter that is spelt by its number: these numbers are no codes."""
    return _SPELT.sub(" ", text) if "\\" in text else text


def _decoded(found: re.Match[str]) -> str:
    spelt = _BYTE.findall(found.group())
    raw = bytes(int(in_hex, 16) if in_hex else int(in_octal, 8) for in_hex, in_octal in spelt)
    return raw.decode("utf-8", "replace")


def _meaning_of(found: re.Match[str]) -> str:
    return _meaning(found.group())


@lru_cache(maxsize=4_096)
def _meaning(escape: str) -> str:
    if len(escape) == 2:
        return " " if escape[1].isalnum() else escape[1]
    if "\\" in escape[2:]:
        high, low = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
    code = int(escape[1:], 8) if escape[1].isdigit() else int(escape[2:].strip("{}"), 16)
    if code > _LAST or 0xD800 <= code < 0xE000:
        return _UNKNOWN
    return CONTROLS.sub("", chr(code))
