"""How values are written in the name of a class of calls."""

import math
from decimal import Decimal
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from schemas.canonical import canonical, sha256_hex

MAX_CHARS = 64
DIGEST_CHARS = 32


@lru_cache(maxsize=4_096)
def name_of(text: str) -> str:
    """An argument's name, in which nothing looks like a separator of paths or terms."""
    return _short(quote(text, safe="").replace(".", "%2E").replace("~", "%7E")) or "~"


def value_of(text: str, safe: str = "") -> str:
    """A value, in which nothing looks like a separator of terms; `safe` are more marks that stay as they are."""
    return _short(quote(text, safe=f"[]{safe}").replace("~", "%7E"))


def digest_of(value: Any) -> str:
    """The digest of a value, of its canonical JSON: the text of a list is not that list.

    Raises:
        MalformedJson: it has none.
    """
    return f"sha256:{sha256_hex(canonical(value))[:DIGEST_CHARS]}"


def magnitude(number: float) -> str:
    """The sign and the power of ten of a number."""
    try:
        size = abs(float(number))
    except OverflowError:
        return "infinite"
    if not math.isfinite(size):
        return "infinite"
    if size == 0:
        return "0"
    # From the shortest decimal text: the logarithm of 1000.0 is below 3 on some machines, and 1e-6 is a little less
    # in binary.
    return f"{'-' if number < 0 else ''}1e{Decimal(repr(size)).adjusted()}"


def _short(text: str) -> str:
    # 128 bits: who can make two texts with one digest has the trust in one for the other.
    return text if len(text) <= MAX_CHARS else f"{text[:32]}~{sha256_hex(text)[:DIGEST_CHARS]}"
