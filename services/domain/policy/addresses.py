"""Addresses in a text: mail addresses, and the hosts of URLs, as every client would read them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from services.domain.policy.urls import UnreadableUrl, url_host
from services.domain.words import lowered

# Between these, a text is read piece by piece: `Ann <ann@example.com>, bob@example.org` has two addresses.
_PIECES = re.compile(
    "[^\\s,;<>()\\[\\]\"'`|\u2018-\u201f\u00ab\u00bb\u2039\u203a\u3008-\u3011\u3014-\u301b]+"
)
_MAIL = re.compile(r"[^@:/\\%?&#\x00-\x20\x7f]+@((?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+)")
_MAY_BE = re.compile(r"[@:/?#]|\\\\|www\.", re.IGNORECASE)
_SCHEME = re.compile(r"(?:https?|wss?|ftp|mailto|javascript|data|file):", re.IGNORECASE)
_TRAILING = ".,!?:"
# A URL without its scheme, as people write it: `t.me/friend`.
_BARE = re.compile(
    r"((?:[\w-]++\.)+(?:xn--[\w-]+|[^\W\d_]{2,})|\d{1,3}(?:\.\d{1,3}){3})(?:[/?#].+|:\d+(?:[/?#].*)?)",
    re.IGNORECASE,
)
_TWO_SLASHES = re.compile(r"[/\\]{2}")
# Of one text; reading each takes some ten microseconds.
MAX_ADDRESSES = 64


class Disputed(Exception):
    """Programs could read an address differently, or there are more than are read."""


class Address(NamedTuple):
    """An address: `text` as it is written, and `place`, the host of a URL or the domain of a mail address (`@…`).

    `start` is where it begins in the text that it was found in.
    """

    text: str
    place: str
    start: int = 0

    @property
    def is_mail(self) -> bool:
        """True for a mail address."""
        return self.place.startswith("@")


def addresses_in(text: str) -> Iterator[Address]:
    """The addresses in a text.

    Raises:
        Disputed: one of them is not read by all clients in the same way, or there are too many.
    """
    if not _MAY_BE.search(text):
        return
    left = MAX_ADDRESSES
    for piece in _PIECES.finditer(text):
        if (found := _address(piece.group().rstrip(_TRAILING))) is not None:
            left -= 1
            if left < 0:
                raise Disputed
            yield found._replace(start=piece.start())


def _address(piece: str) -> Address | None:
    if "://" in piece:
        try:
            return Address(piece, url_host(piece))
        except UnreadableUrl as error:
            raise Disputed from error
    if "@" in piece[1:]:
        mail = _MAIL.fullmatch(piece)
        if mail is None:
            raise Disputed
        return Address(piece, f"@{mail[1].lower()}")
    if _TWO_SLASHES.match(piece) or _SCHEME.match(piece):
        # Some clients read `https:example.com/x`, `//example.com/x` and `/\\example.com` as addresses.
        raise Disputed
    if piece.lower().startswith("www."):
        return Address(piece, piece.lower().partition("/")[0])
    bare = _BARE.fullmatch(piece)
    return bare and Address(piece, lowered(bare[1]))
