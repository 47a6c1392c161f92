"""Misleading characters: those that print as nothing or control what is printed, and those that look like others.

The tables are those of `placet-view 1` and never change: another table is another version of the view. The additions
of version 2 are in `hidden_since`, those of version 4 in `marks`.
"""

import re
from typing import Literal

from schemas.display.hidden_since import is_hidden_since

Badge = Literal[
    "ansi",
    "bidi",
    "control",
    "covering",
    "encoded",
    "homoglyph",
    "lookalike_host",
    "markup",
    "padding",
    "right_to_left",
    "tag",
    "zero_width",
]

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Joiners, soft hyphen, fillers, variation selectors, and Unicode's other format characters: all print as nothing.
_ZERO_WIDTH = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u2800\u3164"
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef"
)
_TAG = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
# The views store U+0000 as U+FFFD. Surrogates, private use and non-characters mean nothing to a reader.
_CONTROL = (
    "\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\uf8ff\ufdd0-\ufdef\ufffc-\uffff\U0001fffe\U0001ffff"
    "\U000efffe-\U0010ffff"
)
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_RIGHT_TO_LEFT = (
    "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
    "\U00010800-\U00010fff\U0001e800-\U0001efff"
)

_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff"
_GREEK = "\u0370-\u0373\u0376-\u037d\u037f\u0386\u0388-\u03ff\u1f00-\u1fff"
_CYRILLIC = "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f"
_ARMENIAN = "\u0531-\u0556\u0561-\u0587"
_CHEROKEE = "\u13a0-\u13fd\uab70-\uabbf"
# Letters that are drawn like Latin ones and belong to no other script.
_STYLED = (
    "\uff21-\uff3a\uff41-\uff5a\u2102\u210a-\u2113\u2115\u2119-\u211d\u2124\u2128-\u2134\u2139\u213c-\u2149"
    "\U0001d400-\U0001d7ff"
)

HIDDEN = f"{_BIDI}{_ZERO_WIDTH}{_TAG}{_CONTROL}{_SPACES}"
FOREIGN = f"{_GREEK}{_CYRILLIC}{_ARMENIAN}{_CHEROKEE}{_STYLED}"
LETTERS = f"{_LATIN}{FOREIGN}0-9_"
# A symbol that is usually shown as a picture; a selector after any other character is hidden.
PICTURED = "[\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]\ufe0f"

SCRIPTS = {
    "Greek": re.compile(f"[{_GREEK}]"),
    "Cyrillic": re.compile(f"[{_CYRILLIC}]"),
    "Armenian": re.compile(f"[{_ARMENIAN}]"),
    "Cherokee": re.compile(f"[{_CHEROKEE}]"),
}
LATIN = re.compile(f"[{_LATIN}]")
STYLED = re.compile(f"[{_STYLED}]")
HAS_FOREIGN = re.compile(f"[{FOREIGN}]")
HAS_RIGHT_TO_LEFT = re.compile(f"[{_RIGHT_TO_LEFT}]")
# Letters of other scripts that are drawn like Latin ones: a word of only such letters reads as a Latin word.
LOOKALIKES = frozenset(
    "АВЕЅІЈКМНОРСТУХҮԚԜаеѕіјорсухһԛԝүӏ"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρυϲϳ"  # Greek
    "ՏՍՕոսօց"  # Armenian
)

_BADGES: tuple[tuple[re.Pattern[str], Badge], ...] = (
    (re.compile("[\x1b\x9b]"), "ansi"),
    (re.compile(f"[{_BIDI}]"), "bidi"),
    (re.compile(f"[{_ZERO_WIDTH}]"), "zero_width"),
    (re.compile(f"[{_TAG}]"), "tag"),
    (re.compile(f"[{_CONTROL}]"), "control"),
)
_HIDDEN = re.compile(f"[{HIDDEN}]")


def is_hidden(char: str) -> bool:
    """Returns True if a character prints as nothing, or controls what is printed."""
    return _HIDDEN.match(char) is not None or is_hidden_since(char)


def badge_of(char: str) -> Badge | None:
    """The badge of a hidden character; None for an unusual space, and for one that is not hidden."""
    found = next((badge for pattern, badge in _BADGES if pattern.match(char)), None)
    return "zero_width" if found is None and is_hidden_since(char) else found


def code_of(char: str) -> str:
    r"""A character as its code point: `\u{202e}`."""
    return f"\\u{{{ord(char):x}}}"
