"""The values of a call that say whom or what it is about: recipients, accounts, hosts, names, files, and its numbers.

A text is identifying, unless the last word of its argument's name says that it is prose or a time (`reply_body`,
`start_date`): then the addresses and codes in it are (`services.domain.codes`). To a tool that runs code no text is
prose, and to one that writes, no query or instruction is. A number is measured if it has a fraction, or if the name
of its argument says that it is a quantity or a time (`amount`, `days`; then also one that is written as a text); any
other is identifying, too, and so is each that a name on its path says so of (`file_id`). The items of a list share
the list's path, and the sum of its measured numbers is one more; to a tool that runs code a list is a value as well,
in its order.
"""

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from schemas.canonical import MAX_SAFE_INTEGER, canonical, sha256_hex
from services.domain.codes import Code
from services.domain.policy.addresses import Address, Disputed
from services.domain.policy.leaves import Leaf, TooMany, leaves_of
from services.domain.policy.text_reading import codes_of, read_text
from services.domain.policy.written_numbers import written_number
from services.domain.prose import mentions_in, prose_of
from services.domain.words import TooManyWords, lowered, plain

MAX_VALUES = 32
MAX_NUMBERS = 16
# What the codes in all values are compared by.
MAX_CODES = 512
# The codes that stand within values.
MAX_WITHIN = 60
# The path of the sum of a list's numbers, at the list's; no name looks like this.
SUM = ".#"
# After the path of a code that stands within a value; no name looks like this, either.
WITHIN = "#"
# A longer value where a name says that it identifies is not looked at, and a longer text is a digest.
MAX_CHARS = 2_048


class Value(NamedTuple):
    """An identifying value: the path of its argument, its text, and what the codes in it are compared by.

    `is_weak` is true for a short code in prose, such as a reference: it is new only where it is tainted; and for a
    strong code within a value (`is_within`), which is never new by itself. `whole` is the text of which `text` is a
    digest, because it is long. `is_list` is true for a list: its items are values, and it comes from where they come
    from.
    """

    path: str
    text: str
    codes: tuple[str, ...] = ()
    is_weak: bool = False
    whole: str = ""
    is_list: bool = False
    is_within: bool = False

    @property
    def digest(self) -> str:
        """The first 128 bits of SHA-256 over path and text, in hexadecimal; 64 bits for what is within a value."""
        return _digest_within(self.path, self.text) if self.is_within else _digest(self.path, self.text)

    @property
    def digests(self) -> tuple[str, ...]:
        """Its own, and those of the codes in it: whoever was rejected can come back beside another number."""
        texts = dict.fromkeys((self.text, *self.codes))
        return tuple(digest(self.path, text) for text in texts for digest in (_digest, _digest_within))

    @property
    def origins(self) -> tuple[str, ...]:
        """What gives it away: the text, without a URL's query or a mail address's tag after a plus; and its codes."""
        if self.is_list or self.is_within:
            return ()
        text = self.whole or self.text
        if "://" in text or text.lower().startswith("www."):
            return (re.split(r"[?#]", text, maxsplit=1)[0], *self.codes)
        return (_without_tag(text), *self.codes)


class Number(NamedTuple):
    """A number, and the path of its argument."""

    path: str
    size: float


class Identifying(NamedTuple):
    """The identifying values of a call, each once, and its numbers."""

    values: tuple[Value, ...]
    numbers: tuple[Number, ...]


def identifying_of(arguments: Mapping[str, Any], risk_parts: Container[str] = ()) -> Identifying:
    """The identifying values and the numbers of a call's arguments.

    Args:
        arguments: parsed JSON.
        risk_parts: the parts of the risk of the tool: if it runs code, any text can be some.

    Raises:
        TooMany: it has more than are looked at, or an address that programs could read differently.
    """
    values: dict[Value, None] = {}
    numbers: dict[Number, None] = {}
    # All of them first: the digest of a list that turns out to have too many items is not worth its time.
    for leaf in [*leaves_of(arguments)]:
        for found in _found(leaf, risk_parts):
            kept: dict[Any, None] = values if isinstance(found, Value) else numbers
            kept[found] = None
            if len(values) > MAX_VALUES + MAX_WITHIN or len(numbers) > MAX_NUMBERS:
                raise TooMany
    within = sum(value.is_within for value in values)
    if within > MAX_WITHIN or len(values) - within > MAX_VALUES:
        raise TooMany
    if sum(len(value.codes) for value in values) > MAX_CODES:
        raise TooMany
    return Identifying(tuple(values), tuple(numbers))


def _found(leaf: Leaf, risk_parts: Container[str]) -> Iterable[Value | Number]:
    value = leaf.value
    if value is None or isinstance(value, bool):
        return ()
    if isinstance(value, list | tuple):
        return _of_list(leaf, value, is_ordered="runs_code" in risk_parts and len(value) > 1)
    if isinstance(value, str):
        if leaf.is_named and len(value) > MAX_CHARS:
            raise TooMany
        number = _number_in(value)
        size = number if leaf.is_measured else None
        is_whole = size is None and (leaf.is_named or not leaf.is_prose(risk_parts))
        # As it is written: in code, and in names of files, one space is not two.
        found = _of_text(leaf.path, value) if is_whole else _of_prose(leaf.path, value)
        return found if size is None else (*found, Number(leaf.path, size))
    if not abs(value) <= MAX_SAFE_INTEGER:
        # No two programs agree about it.
        raise TooMany
    return (Number(leaf.path, float(value)) if leaf.measures(value) else Value(leaf.path, canonical(value)),)


def _of_list(leaf: Leaf, items: Sequence[Any], *, is_ordered: bool) -> Iterable[Value | Number]:
    """A list as a value, if its order matters; and the sum of its numbers, if they are measured."""
    if is_ordered:
        yield Value(leaf.path, f"sha256:{sha256_hex(canonical(items))}", is_list=True)
    sizes = [size for item in items if (size := _number_in(item)) is not None]
    if not all(abs(size) <= MAX_SAFE_INTEGER for size in sizes):
        raise TooMany
    if len(sizes) > 1 and all(map(leaf.measures, sizes)):
        yield Number(f"{leaf.path}{SUM}", math.fsum(sizes))


def _number_in(item: Any) -> float | None:
    """A number, also one that is written as a text; None for anything else."""
    if isinstance(item, str):
        return written_number(item)
    return item if isinstance(item, int | float) and not isinstance(item, bool) else None


def _of_prose(path: str, text: str) -> list[Value]:
    """The addresses and codes in a text, or all of it if it is no prose."""
    try:
        form = plain(text)
        read = [read_text(one) for one in prose_of(text, form)]
    except TooManyWords as error:
        raise TooMany from error
    except Disputed:
        read = []
    if not read:
        return _of_text(path, text)
    found = dict.fromkeys(Value(path, one) for one in mentions_in(form))
    found.update(dict.fromkeys(value for one in read for value in _of_addresses(path, one.addresses)))
    for code in chain.from_iterable(one.codes for one in read):
        found[Value(path, code.text, code.parts, is_weak=not code.is_strong)] = None
        found.update(dict.fromkeys(_within(path, code.text, [code])))
        if len(found) > MAX_VALUES + MAX_WITHIN:
            raise TooMany
    return [*found]


def _of_text(path: str, text: str) -> list[Value]:
    """The addresses in a text, and, if it is more than one of them, all of it."""
    try:
        addresses, _, codes = read_text(text)
    except TooManyWords as error:
        raise TooMany from error
    except Disputed:
        # Whatever a program takes for an address, it is in the same text alone.
        addresses, codes = (), _codes(text)
    found = _of_addresses(path, addresses)
    whole = [one.text for one in found if not one.is_within]
    if text and text not in whole and [lowered(text)] != whole:
        parts = tuple(dict.fromkeys(part for code in codes for part in code.parts))
        is_long = len(text) > MAX_CHARS
        kept = f"sha256:{sha256_hex(text)}" if is_long else text
        found.append(Value(path, kept, parts, whole=text if is_long else ""))
        found += _within(path, text, codes)
        found += [_inner(path, mention) for mention in mentions_in(text) if mention != text]
    return found


def _within(path: str, text: str, codes: Iterable[Code]) -> list[Value]:
    """The strong codes within a value, and what could be an account of its own in them.

    Whoever was rejected can come back with another word beside the account. Nobody decides on them by themselves.
    """
    found: dict[str, None] = {}
    for code in codes:
        if code.is_strong:
            found.update(dict.fromkeys(part for part in (code.text, *code.strong_parts) if part != text))
        if len(found) > MAX_WITHIN:
            raise TooMany
    return [_inner(path, part) for part in found]


def _codes(text: str) -> tuple[Code, ...]:
    try:
        return codes_of(text)
    except TooManyWords as error:
        raise TooMany from error


def _of_addresses(path: str, addresses: Iterable[Address]) -> list[Value]:
    found: list[Value] = []
    for address in addresses:
        if address.is_mail:
            mail = lowered(address.text)
            found.append(Value(path, mail))
            found += [_inner(path, mail) for mail in (_without_tag(mail),) if mail != found[-1].text]
        else:
            # A host is written as codes are, in which names are in capitals.
            found += [
                Value(path, address.place),
                Value(path, address.text),
                _inner(path, address.place.upper()),
            ]
        if len(found) > MAX_VALUES + MAX_WITHIN or len(address.text) > MAX_CHARS:
            raise TooMany
    return found


def _inner(path: str, text: str) -> Value:
    return Value(path, text, is_weak=True, is_within=True)


def _without_tag(text: str) -> str:
    """A mail address without the tag after a plus."""
    *names, last = text.split("@")
    return "@".join([*(name.partition("+")[0] for name in names), last])


def _digest(path: str, text: str) -> str:
    return sha256_hex(f"{path}\0{text}")[:32]


def _digest_within(path: str, text: str) -> str:
    # Two with one digest would only have more calls asked about.
    return sha256_hex(f"{path}{WITHIN}\0{text}")[:16]
