"""The arguments of a call one by one, and what their names say: whether each identifies, measures, or is prose."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

from schemas.canonical import sha256_hex
from services.domain.policy.file_names import is_beside_program
from services.domain.policy.written_numbers import is_like_number
from services.domain.policy.written_times import is_made_of_times, is_time

# Arguments, and items of lists, that are looked at, and how deep.
MAX_LOOKED_AT = 1_000
MAX_DEPTH = 8
# The name at the end of a longer path is a digest: paths are kept with each approval, and shown. What is around it
# stays, so that a rule about an argument is about all that is in it.
MAX_PATH_CHARS = 96
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
    bash cmd cmds code command commands condition conditions config configuration cron crontab dockerfile eval exec
    expression filter filters formula json macro manifest pattern payload playbook program python regex script
    scripts shell sql statement stdin template where workflow xml yaml
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
# With these, details name someone.
_PAYING_WORDS = "bank billing card delivery payee payment payout shipping"
# What a quantity's word is a part of without being one: `cost_center`.
_GROUPING_WORDS = (
    "category center centers centre centres class code codes group groups list sheet sheets type types"
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
_PAYING, _GROUPING = frozenset(_PAYING_WORDS.split()), frozenset(_GROUPING_WORDS.split())
_MEASURED = frozenset(_QUANTITY_WORDS.split()) | _TIMES


class TooMany(Exception):
    """A call has more values than are looked at, or one that cannot be read in one way."""


class Leaf(NamedTuple):
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
        return not self.is_named and not _MEASURED.isdisjoint(self.last) and _GROUPING.isdisjoint(self.last)

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
        if is_like_number(self.value) or (word == "details" and not _PAYING.isdisjoint(self.last)):
            return False
        if is_made_of_times(self.value):
            # Numbers alone are none: `30,5` where days are expected.
            return is_time(self.value)
        # What has no letters names something where a text is expected: `comment: "4242"`.
        return word not in _TIMES and _LETTER.search(self.value) is not None


def leaf_at(names: Sequence[str], value: Any) -> Leaf:
    """A value below these names, of which no more than `MAX_NAME_CHARS` characters are given; without its path."""
    words = [_words(name) for name in names]
    return Leaf("", frozenset(chain.from_iterable(words)), words[-1], value)


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


def leaves_of(arguments: Mapping[str, Any]) -> Iterator[Leaf]:
    """Each value that is no object or list, each list, and each name inside of an argument, which can be a value."""
    nothing: frozenset[str] = frozenset()
    waiting: list[tuple[Leaf, int]] = [(Leaf("", nothing, (), arguments), 0)]
    left = MAX_LOOKED_AT
    while waiting:
        one, depth = waiting.pop()
        left -= 1
        inside = len(one.value) if isinstance(one.value, Mapping | list | tuple) else 0
        # Before anything of it is read: one call can have 100,000 of them.
        if left < len(waiting) + inside or depth > MAX_DEPTH:
            raise TooMany
        if isinstance(one.value, Mapping):
            around = one.words | {"code"} if is_of_program(one.value) else one.words
            for name, value in one.value.items():
                last = _words(name[:MAX_NAME_CHARS])
                words = around.union(last)
                waiting.append((Leaf(joined(one.path, name), words, last, value), depth + 1))
                if depth:
                    yield one._replace(last=_A_NAME, words=nothing, value=name)
        elif isinstance(one.value, list | tuple):
            waiting += [(one._replace(value=value), depth + 1) for value in one.value]
            yield one
        else:
            yield one


def is_of_program(members: Mapping[str, Any]) -> bool:
    """True if one of them names a file that is no document: `path: deploy.sh`."""
    return any(
        is_beside_program(frozenset(_words(name[:MAX_NAME_CHARS])), value) for name, value in members.items()
    )


@lru_cache(maxsize=4_096)
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))
