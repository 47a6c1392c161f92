"""Blank texts: those of which a reader sees nothing, whatever characters they have."""

import re

# Unicode's spaces and line ends, controls and format characters (its categories Z, Cc and Cf, with what is reserved
# for later ones), fillers and variation selectors, without the format characters that are printed (Unicode's property
# Prepended_Concatenation_Mark, such as U+06DD). The table is fixed: of two processes with another Unicode each,
# one would refuse what the other has accepted. `tests/schemas/test_blank.py` derives it anew.
_UNSEEN = (
    "\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5"
    "\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# One character that is seen, for patterns.
SEEN = f"[^{_UNSEEN}]"
_SEEN = re.compile(SEEN)


def is_blank(text: str) -> bool:
    """Returns True if a text has no character that is seen."""
    return _SEEN.search(text) is None
