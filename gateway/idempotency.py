"""The key under which a request is repeated: `Idempotency-Key` over REST, `ref` on a socket; one key at both doors.

ASCII alone: HTTP has no encoding for more in a header. A shell sends UTF-8 and a browser Latin-1, so that one key
would be two. Nor does a header keep the spaces around its value.
"""

from __future__ import annotations

import re

from gateway.problems import Problem
from schemas.refusals import Refusal

KEY_MAX_CHARS = 256
KEY_PATTERN = rf"^[!-~]([ -~]{{0,{KEY_MAX_CHARS - 2}}}[!-~])?$"
_KEY = re.compile(KEY_PATTERN)


def idempotency_key(text: object, name: str) -> str:
    """A key as it was given.

    Args:
        text: what was given.
        name: what it is called there.

    Raises:
        Problem: 422, it is no such key.
    """
    if not isinstance(text, str) or _KEY.fullmatch(text) is None:
        what = f"1 to {KEY_MAX_CHARS} printable ASCII characters without spaces around them"
        raise Problem(Refusal.INVALID, f"{name} must be {what}")
    return text
