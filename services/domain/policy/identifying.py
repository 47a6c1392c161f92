"""The values of a call that say whom or what it is about: recipients, accounts, hosts, names, files, and its numbers.

Each address in a text is identifying, and so is a short text, unless the name of its argument says that it is prose
or a time (`subject`, `start_date`). A longer text is, if a name on its path says so (`recipient`, `file_id`), and
then numbers are texts too; other numbers are measured. The items of a list share the list's path.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from schemas.canonical import MAX_SAFE_INTEGER, canonical, sha256_hex
from services.domain.policy.addresses import Disputed, addresses_in

MAX_VALUES = 32
MAX_NUMBERS = 16
# Arguments, and items of lists, that are looked at, and how deep.
MAX_LOOKED_AT = 1_000
MAX_DEPTH = 8
# A longer path is a digest: paths are kept with each approval, and shown.
MAX_PATH_CHARS = 96
# A longer value is not looked at: it says no one thing.
MAX_CHARS = 2_048
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAMING_WORDS = """
    account accounts acct address addresses attendee attendees bcc beneficiary bic bucket cc channel channels client
    contact contacts creditor customer database destination directory domain email emails endpoint file filename
    files folder group groups guest guests host hostname iban id ids ip key link links mail member members
    msisdn name names number
    owner owners participant participants path paths payee payees payer phone receiver recipient recipients repo
    repository role room server site supplier table target targets team to uri url urls user username users vendor
    webhook
"""
_PROSE_WORDS = """
    body caption comment comments content contents date dates day days description details duration end feedback
    format hour html instruction instructions message messages minute month note notes prompt query question reason
    reply search snippet start subject summary text time times timezone title when year
"""
_IDENTIFYING = frozenset(_NAMING_WORDS.split())
_PROSE = frozenset(_PROSE_WORDS.split())
_SHORT_CHARS = 64


class TooMany(Exception):
    """A call has more values than are looked at, or one that cannot be read in one way."""


class Value(NamedTuple):
    """An identifying value: the path of its argument, and its text.

    `is_exact` is true for a URL, which is new only where it came out of an untrusted output: its host has a value of
    its own.
    """

    path: str
    text: str
    is_exact: bool = False

    @property
    def digest(self) -> str:
        """The first 128 bits of SHA-256 over path and text, in hexadecimal."""
        return sha256_hex(f"{self.path}\0{self.text}")[:32]

    @property
    def origin(self) -> str:
        """The part that says where it leads: a URL without its query, a mail address without the tag after a plus."""
        if self.is_exact:
            return re.split(r"[?#]", self.text, maxsplit=1)[0]
        return re.sub(r"\+[^@]*@", "@", self.text)


class Number(NamedTuple):
    """A number, and the path of its argument."""

    path: str
    size: float


class Identifying(NamedTuple):
    """The identifying values of a call, each once, and its numbers."""

    values: tuple[Value, ...]
    numbers: tuple[Number, ...]


class _Leaf(NamedTuple):
    """A value that is no object or list: its path, the words of the names on it, and those of the last name."""

    path: str
    words: frozenset[str]
    last: frozenset[str]
    value: Any


def identifying_of(arguments: Mapping[str, Any]) -> Identifying:
    """The identifying values and the numbers of a call's arguments, parsed JSON.

    Raises:
        TooMany: it has more than are looked at, or an address that programs could read differently.
    """
    values: dict[Value, None] = {}
    numbers: dict[Number, None] = {}
    for leaf in _leaves(arguments):
        for found in _found(leaf):
            kept: dict[Any, None] = values if isinstance(found, Value) else numbers
            kept[found] = None
            if len(values) > MAX_VALUES or len(numbers) > MAX_NUMBERS:
                raise TooMany
    return Identifying(tuple(values), tuple(numbers))


def joined(path: str, name: str) -> str:
    """The path of an object's member, in which nothing of a name looks like a separator."""
    written = quote(name, safe="", errors="surrogatepass").replace(".", "%2E").replace("~", "%7E")
    whole = f"{path}.{written}" if path else written
    return whole if len(whole) <= MAX_PATH_CHARS else f"~{sha256_hex(whole)[:32]}"


def prefixes(path: str) -> Iterator[str]:
    """A path, and those of the objects around it."""
    end = len(path)
    while end > 0:
        yield path[:end]
        end = path.rfind(".", 0, end)


def _leaves(arguments: Mapping[str, Any]) -> Iterator[_Leaf]:
    """Each value that is no object or list, and each name inside of an argument, which can be a value as well."""
    nothing: frozenset[str] = frozenset()
    waiting: list[tuple[_Leaf, int]] = [(_Leaf("", nothing, nothing, arguments), 0)]
    left = MAX_LOOKED_AT
    while waiting:
        one, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            raise TooMany
        if isinstance(one.value, Mapping):
            for name, value in one.value.items():
                last = _words(name)
                waiting.append((_Leaf(joined(one.path, name), one.words | last, last, value), depth + 1))
                if depth:
                    yield one._replace(last=_PROSE, words=nothing, value=name)
        elif isinstance(one.value, list | tuple):
            waiting += [(one._replace(value=value), depth + 1) for value in one.value]
        else:
            yield one


@lru_cache(maxsize=4_096)
def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name[:256]))


def _found(leaf: _Leaf) -> Iterable[Value | Number]:
    value = leaf.value
    if value is None or isinstance(value, bool):
        return ()
    named = not leaf.words.isdisjoint(_IDENTIFYING)
    if isinstance(value, str):
        text = " ".join(value.split()) if len(value) <= MAX_CHARS else value
        is_short = len(text) <= _SHORT_CHARS and leaf.last.isdisjoint(_PROSE)
        return _of_text(leaf.path, text, is_whole=named or is_short)
    if abs(value) > MAX_SAFE_INTEGER:
        # No two programs agree about it.
        raise TooMany
    return (Value(leaf.path, canonical(value)),) if named else (Number(leaf.path, float(value)),)


def _of_text(path: str, text: str, *, is_whole: bool) -> list[Value]:
    """The values of a text: its addresses, and the text itself if it is identifying and more than one address."""
    found: list[Value] = []
    try:
        for address in addresses_in(text):
            if address.is_mail:
                found.append(Value(path, address.text.lower()))
            else:
                found += [Value(path, address.place), Value(path, address.text, is_exact=True)]
            if len(found) > MAX_VALUES:
                raise TooMany
    except Disputed as error:
        raise TooMany from error
    if is_whole and text and text not in (one.text for one in found) and text.lower() != _only(found):
        found.append(Value(path, text))
    if any(len(value.text) > MAX_CHARS for value in found):
        raise TooMany
    return found


def _only(found: list[Value]) -> str | None:
    return found[0].text if len(found) == 1 else None
