"""Finds bearer tokens in text, so that no URL with one is served and no log line with one is written."""

import re

# A JWS in its compact form (RFC 7515): a JSON object, a payload and a signature, each as base64url. The first two
# characters of an object's text are `{"`, or `{` and white space; dots may be percent-encoded.
_DOT = r"(?:\.|%2[eE])"
_FORM = re.compile(
    rf"e(?:yJ|yA|w[k0o])[A-Za-z0-9_=-]{{8,}}{_DOT}[A-Za-z0-9_=-]{{8,}}(?:{_DOT}[A-Za-z0-9_=-]*)+"
)
HIDDEN = "[token]"


def holds_token(text: str) -> bool:
    """Returns True if a text contains a token, or text that looks like one."""
    return _FORM.search(text) is not None


def without_tokens(text: str) -> str:
    """The text with `[token]` in place of each token."""
    return _FORM.sub(HIDDEN, text)
