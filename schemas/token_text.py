"""Bearer tokens as text: found wherever they stand, so that no URL is served and no log written with one in it."""

import re

# A JWS in its compact form (RFC 7515): a JSON object, a payload and a signature, each as base64url. The first two
# characters of an object's text are `{"`, or `{` and white space; dots may be percent-encoded.
_DOT = r"(?:\.|%2[eE])"
_FORM = re.compile(
    rf"e(?:yJ|yA|w[k0o])[A-Za-z0-9_=-]{{8,}}{_DOT}[A-Za-z0-9_=-]{{8,}}(?:{_DOT}[A-Za-z0-9_=-]*)+"
)
HIDDEN = "[token]"


def holds_token(text: str) -> bool:
    """Whether a text has a token in it, or what looks like one."""
    return _FORM.search(text) is not None


def without_tokens(text: str) -> str:
    """The text with `[token]` in the place of each."""
    return _FORM.sub(HIDDEN, text)
