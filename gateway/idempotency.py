"""Idempotency keys: `Idempotency-Key` over REST, `ref` on a socket; the same key counts as the same in both.

Keys are ASCII only: HTTP has no encoding for other characters in a header. A shell sends UTF-8 and a browser Latin-1,
so one key would become two. Nor does a header keep the spaces around its value.
"""

from __future__ import annotations

import re

from gateway.problems import Problem
from schemas.refusals import Refusal

KEY_MAX_CHARS = 256
KEY_PATTERN = rf"^[!-~]([ -~]{{0,{KEY_MAX_CHARS - 2}}}[!-~])?$"
_KEY = re.compile(KEY_PATTERN)


def idempotency_key(text: object, name: str) -> str:
    """Return a valid key unchanged.

    Args:
        text: the key as given.
        name: the name of its header or field.

    Raises:
        Problem: 422, it is not a valid key.
    """
    if not isinstance(text, str) or _KEY.fullmatch(text) is None:
        what = f"1 to {KEY_MAX_CHARS} printable ASCII characters without spaces around them"
        raise Problem(Refusal.INVALID, f"{name} must be {what}")
    return text
