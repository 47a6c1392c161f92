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
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from schemas.canonical import MAX_SAFE_INTEGER, canonical, sha256_hex
from services.domain.codes import Code, codes_in
from services.domain.markup import is_opaque
from services.domain.policy.addresses import Disputed, addresses_in
from services.domain.policy.written_numbers import written_number
from services.domain.words import TooManyWords, lowered, plain

MAX_VALUES = 32
MAX_NUMBERS = 16
# What the codes in all values are compared by.
MAX_CODES = 512
# Arguments, and items of lists, that are looked at, and how deep.
MAX_LOOKED_AT = 1_000
MAX_DEPTH = 8
# The name at the end of a longer path is a digest: paths are kept with each approval, and shown. What is around it
# stays, so that a rule about an argument is about all that is in it.
MAX_PATH_CHARS = 96
# The path of the sum of a list's numbers, at the list's; no name looks like this.
SUM = ".#"
# A longer value where a name says that it identifies is not looked at, and a longer text is a digest.
MAX_CHARS = 2_048
# Of a longer name the first characters are words.
MAX_NAME_CHARS = 256
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
    hour html instruction instructions message messages minute month note notes prompt query question reason
    reply search snippet start subject summary text time times timezone title when year
"""
# Prose to a tool that only reads; what a tool that writes does with it is in its words.
_COMMAND_WORDS = "instruction instructions prompt query search"
# Programs, or parts of them, whatever the names around them and after them say: `job.script_text`.
_CODE_WORDS = """
    bash cmd code command commands condition config configuration eval exec expression filter filters formula json
    macro manifest pattern payload program regex script scripts shell sql statement template where workflow xml yaml
"""
_TIME_WORDS = "date dates day days duration end hour minute minutes month start time times timezone when year"
_QUANTITY_WORDS = """
    adult adults age amount amounts balance budget cent cents child children copies cost costs count days
    deposit depth discount distance duration euro euros fee fees height hours kilometers lat latitude length
    level limit limits lng lon longitude max maximum meters miles min minimum months nights offset page pages
    people percent percentage persons price prices priority quantity qty radius rank rate rates rating ratio
    retries retry rooms score scores seats seconds share size sizes stars step steps subtotal sum tax temperature tip
    top total totals units usd volume weeks weight width years
    anzahl betrag importe menge monto montant preis prix quantite summe
"""
# Whatever else stands where a time is expected is a value: `* * * * *` for a job, `90d`, `now`.
MAX_TIME_CHARS = 64
_CLOCK = r"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:\.\d{1,9})?)?(?:Z|[+-][01]\d:?[0-5]\d)?"
_MONTH_NUMBER, _DAY_NUMBER = r"(?:1[0-2]|0?[1-9])", r"(?:3[01]|[12]\d|0?[1-9])"
_DAY = (
    rf"(?:19|20)\d\d([-/.]){_MONTH_NUMBER}(?:\1{_DAY_NUMBER})?"
    rf"|(?:{_MONTH_NUMBER}([-/.]){_DAY_NUMBER}|{_DAY_NUMBER}([-/.]){_MONTH_NUMBER})[-/.](?:(?:19|20)\d\d|\d\d)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_NUMBERED = rf"{_DAY_NUMBER}(?:st|nd|rd|th)?"
_NEAR = r"this|next|last|today|tomorrow|yesterday"
_TIME = re.compile(
    rf"(?>(?>(?:{_DAY})(?:T{_CLOCK})?|{_CLOCK}|{_MONTH}|{_NUMBERED}(?= {_MONTH})|{_WEEKDAY}|{_NUMBERED}(?=[, ]|$)"
    rf"|\d{{1,2}} ?[ap]\.?m\.?|(?:19|20)\d\d|[ap]\.?m\.?|utc|gmt|at|-|{_NEAR}|to)(?:[\s,]+|$))*+",
    re.IGNORECASE,
)
# Of one line where they are used: another one can be a header of its own.
_LINE_WORDS = "subject title"
_LETTER = re.compile(r"[^\W\d_]")
_BREAK = re.compile(r"[\r\n\v\f\x85\u2028\u2029]")
# The names inside of an argument are looked at as prose.
_A_NAME = ("text",)
_IDENTIFYING = frozenset(_NAMING_WORDS.split())
_PROSE = frozenset(_PROSE_WORDS.split())
_COMMANDS = frozenset(_COMMAND_WORDS.split())
_CODE = frozenset(_CODE_WORDS.split())
_LINES = frozenset(_LINE_WORDS.split())
_TIMES = frozenset(_TIME_WORDS.split())
_MEASURED = frozenset(_QUANTITY_WORDS.split()) | _TIMES


class TooMany(Exception):
    """A call has more values than are looked at, or one that cannot be read in one way."""


class Value(NamedTuple):
    """An identifying value: the path of its argument, its text, and what the codes in it are compared by.

    `is_weak` is true for a short code in prose, such as a reference: it is new only where it is tainted. `whole` is
    the text of which `text` is a digest, because it is long. `is_list` is true for a list: its items are values, and
    it comes from where they come from.
    """

    path: str
    text: str
    codes: tuple[str, ...] = ()
    is_weak: bool = False
    whole: str = ""
    is_list: bool = False

    @property
    def digest(self) -> str:
        """The first 128 bits of SHA-256 over path and text, in hexadecimal."""
        return _digest(self.path, self.text)

    @property
    def digests(self) -> tuple[str, ...]:
        """Its own, and those of the codes in it: whoever was rejected can come back beside another number."""
        return (self.digest, *(_digest(self.path, code) for code in self.codes if code != self.text))

    @property
    def origins(self) -> tuple[str, ...]:
        """What gives it away: the text, without a URL's query or a mail address's tag after a plus; and its codes."""
        if self.is_list:
            return ()
        text = self.whole or self.text
        if "://" in text or text.lower().startswith("www."):
            return (re.split(r"[?#]", text, maxsplit=1)[0], *self.codes)
        *names, last = text.split("@")
        return ("@".join([*(name.partition("+")[0] for name in names), last]), *self.codes)


class Number(NamedTuple):
    """A number, and the path of its argument."""

    path: str
    size: float


class Identifying(NamedTuple):
    """The identifying values of a call, each once, and its numbers."""

    values: tuple[Value, ...]
    numbers: tuple[Number, ...]


class _Leaf(NamedTuple):
    """A value that is no object: its path, the words of the names on it, and in their order those of the last one."""

    path: str
    words: frozenset[str]
    last: tuple[str, ...]
    value: Any

    @property
    def is_named(self) -> bool:
        """True if a name on its path says that it identifies."""
        return not self.words.isdisjoint(_IDENTIFYING)

    @property
    def is_measured(self) -> bool:
        """True if its name says that a number here is a quantity or a time, and no name on its path identifies."""
        return not self.is_named and not _MEASURED.isdisjoint(self.last)

    def measures(self, size: float) -> bool:
        """True if a number here is a quantity or a time, by its name or its fraction."""
        return self.is_measured or (not self.is_named and size != int(size))

    def is_prose(self, risk_parts: Container[str]) -> bool:
        """True if the last word of its name says so: `start_date` is a date, and `start_command` a command."""
        if self.last is _A_NAME:
            return True
        word = self.last[-1] if self.last else ""
        if word not in _PROSE or "runs_code" in risk_parts or not self.words.isdisjoint(_CODE):
            return False
        if (word in _COMMANDS and "writes" in risk_parts) or (word in _LINES and _BREAK.search(self.value)):
            return False
        if len(self.value) <= MAX_TIME_CHARS and _TIME.fullmatch(self.value):
            return _number_in(self.value) is None
        # What has no letters names something where a text is expected: `comment: "4242"`.
        return word not in _TIMES and _LETTER.search(self.value) is not None


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
    for leaf in [*_leaves(arguments)]:
        for found in _found(leaf, risk_parts):
            kept: dict[Any, None] = values if isinstance(found, Value) else numbers
            kept[found] = None
            if len(values) > MAX_VALUES or len(numbers) > MAX_NUMBERS:
                raise TooMany
    if sum(len(value.codes) for value in values) > MAX_CODES:
        raise TooMany
    return Identifying(tuple(values), tuple(numbers))


def joined(path: str, name: str) -> str:
    """The path of an object's member, in which nothing of a name looks like a separator."""
    # An empty name is one as well: whatever is below it is at another place than what is not.
    written = quote(name, safe="", errors="surrogatepass").replace(".", "%2E").replace("~", "%7E") or "~"
    if len(path) + len(written) > MAX_PATH_CHARS:
        written = f"~{sha256_hex(written)[:32]}"
    return f"{path}.{written}" if path else written


def prefixes(path: str) -> Iterator[str]:
    """A path, and those of the objects around it."""
    end = len(path)
    while end > 0:
        yield path[:end]
        end = path.rfind(".", 0, end)


def _leaves(arguments: Mapping[str, Any]) -> Iterator[_Leaf]:
    """Each value that is no object or list, each list, and each name inside of an argument, which can be a value."""
    nothing: frozenset[str] = frozenset()
    waiting: list[tuple[_Leaf, int]] = [(_Leaf("", nothing, (), arguments), 0)]
    left = MAX_LOOKED_AT
    while waiting:
        one, depth = waiting.pop()
        left -= 1
        inside = len(one.value) if isinstance(one.value, Mapping | list | tuple) else 0
        # Before anything of it is read: one call can have 100,000 of them.
        if left < len(waiting) + inside or depth > MAX_DEPTH:
            raise TooMany
        if isinstance(one.value, Mapping):
            for name, value in one.value.items():
                last = _words(name[:MAX_NAME_CHARS])
                words = one.words.union(last)
                waiting.append((_Leaf(joined(one.path, name), words, last, value), depth + 1))
                if depth:
                    yield one._replace(last=_A_NAME, words=nothing, value=name)
        elif isinstance(one.value, list | tuple):
            waiting += [(one._replace(value=value), depth + 1) for value in one.value]
            yield one
        else:
            yield one


@lru_cache(maxsize=4_096)
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def _found(leaf: _Leaf, risk_parts: Container[str]) -> Iterable[Value | Number]:
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


def _of_list(leaf: _Leaf, items: Sequence[Any], *, is_ordered: bool) -> Iterable[Value | Number]:
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
    """The addresses and codes in a text, or all of it if it may be shown as another one."""
    try:
        form = plain(text)
    except TooManyWords as error:
        raise TooMany from error
    if is_opaque(form):
        return _of_text(path, text)
    found, rest = _addresses(path, text)
    if form != text:
        # Some programs take `\uff20` for an @, and some do not.
        more, _ = _addresses(path, form)
        found += more
    return [*found, *(Value(path, one.text, one.parts, is_weak=not one.is_strong) for one in _codes(rest))]


def _of_text(path: str, text: str) -> list[Value]:
    """The addresses in a text, and, if it is more than one of them, all of it."""
    found, rest = _addresses(path, text)
    codes = _codes(rest)
    if text and text not in (one.text for one in found) and lowered(text) != _only(found):
        parts = tuple(dict.fromkeys(part for code in codes for part in code.parts))
        is_long = len(text) > MAX_CHARS
        kept = f"sha256:{sha256_hex(text)}" if is_long else text
        found.append(Value(path, kept, parts, whole=text if is_long else ""))
    return found


def _codes(text: str) -> Sequence[Code]:
    """The codes in a text, each once."""
    found: dict[Code, None] = {}
    try:
        for code in codes_in(text):
            found[code] = None
            if len(found) > MAX_LOOKED_AT:
                raise TooMany
    except TooManyWords as error:
        raise TooMany from error
    return list(found)


def _addresses(path: str, text: str) -> tuple[list[Value], str]:
    """The addresses in a text, and the text without them."""
    found: list[Value] = []
    rest, at = [], 0
    try:
        for address in addresses_in(text):
            if address.is_mail:
                found.append(Value(path, lowered(address.text)))
            else:
                found += [Value(path, address.place), Value(path, address.text)]
            if len(found) > MAX_VALUES or len(address.text) > MAX_CHARS:
                raise TooMany
            # Elsewhere the same letters can be a part of another name.
            rest.append(text[at : address.start])
            at = address.start + len(address.text)
    except Disputed as error:
        raise TooMany from error
    return found, "\n".join([*rest, text[at:]])


def _only(found: list[Value]) -> str | None:
    return found[0].text if len(found) == 1 else None


def _digest(path: str, text: str) -> str:
    return sha256_hex(f"{path}\0{text}")[:32]
