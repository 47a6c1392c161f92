"""A text as values and classes of calls are read from it: its addresses, and the codes in what is left."""

from functools import lru_cache
from typing import NamedTuple

from services.domain.codes import Code, codes_in
from services.domain.policy.addresses import Address, addresses_in
from services.domain.words import TooManyWords

MAX_DIFFERENT_CODES = 1_000
# A longer text is read anew by each who asks: these are what most arguments are.
REMEMBERED_CHARS = 2_048


class Reading(NamedTuple):
    """What is in a text: its addresses in their order, the text without them, and the codes in that, each once."""

    addresses: tuple[Address, ...]
    rest: str
    codes: tuple[Code, ...]


def read_text(text: str) -> Reading:
    """The addresses in a text, and the codes in what is left of it.

    Raises:
        Disputed: programs could read one of the addresses differently.
        TooManyWords: the text is too long, or has too many words with digits, or codes.
    """
    return _read_short(text) if len(text) <= REMEMBERED_CHARS else _read(text)


# Both a call's values and its class are read from the same texts, one after the other.
@lru_cache(maxsize=64)
def _read_short(text: str) -> Reading:
    return _read(text)


def _read(text: str) -> Reading:
    addresses = tuple(addresses_in(text))
    rest = _without(text, addresses)
    return Reading(addresses, rest, codes_of(rest))


def codes_of(text: str) -> tuple[Code, ...]:
    """The codes in a text, each once.

    Raises:
        TooManyWords: there are too many.
    """
    found: dict[Code, None] = {}
    for code in codes_in(text):
        found[code] = None
        if len(found) > MAX_DIFFERENT_CODES:
            raise TooManyWords
    return tuple(found)


def _without(text: str, addresses: tuple[Address, ...]) -> str:
    rest, at = [], 0
    for address in addresses:
        # Elsewhere the same letters can be a part of another name.
        rest.append(text[at : address.start])
        at = address.start + len(address.text)
    return "\n".join([*rest, text[at:]])
