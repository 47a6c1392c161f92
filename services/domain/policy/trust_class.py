"""The class of a call: what a decision on it says about later calls, in coarse terms.

A class names the arguments whose kind matters and the risk, as `name=value` joined by `&`:
`amount=1e2&to=@example.com&risk=money,novel:to,writes`. The risk has the paths of new and of tainted values
(`schemas.trust_family`). For each argument:

* a flag: its value; nothing: `~null`, an empty object: `{}`, and a blank text: `~blank`; a number, also one that is
  written as a text: its sign and power of ten (`1e2` from 100 to below 1,000, `-1e0` from −1 to above −10);
* what the published schema lists (`enum`, `const`): itself, in quotes; a text with addresses in it: the domains
  (`@example.com`) and hosts; any other text: `text`;
* a list: the power of ten of its length (`to#=1e0`), with numbers in it the length itself, how often an item is
  repeated at most (`to#=1e0~2x`), and the terms of its items; a list with objects, lists, flags or nothing in it: a
  digest of it.

Calls are in no class if a class would say too little of them: an address that programs could read differently, items
or addresses of too many kinds, deep nesting, too many values. A class that would be long is a digest of it and of the
arguments, which only equal calls share.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from schemas.call_history import NO_HISTORY, CallHistory
from schemas.canonical import canonical, sha256_hex
from schemas.trust_family import RISK, history_part
from services.domain.markup import is_opaque
from services.domain.policy.addresses import Address, Disputed, addresses_in
from services.domain.policy.written_numbers import is_like_number, written_number
from services.domain.words import TooManyWords, plain

NO_CLASS = ""
MAX_CHARS = 300
MAX_DEPTH = 4
# The values of a call that are looked at, the kinds of items of a list, and the addresses in a text.
MAX_VALUES = 200
MAX_KINDS = 4
MAX_ADDRESSES = 8
MAX_TEXT_CHARS = 64
DIGEST_CHARS = 32
MAX_ALTERNATIVES = 64
_MADE_OF = ("anyOf", "oneOf", "allOf", "if", "then", "else")
_OF_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
# What a schema refers to by these is not looked for.
_ELSEWHERE = frozenset(("$dynamicRef", "$recursiveRef", "dependencies"))
_TEXTS_AND_NUMBERS = frozenset((str, int, float))


class _Vague(Exception):
    """A class would say too little of the call."""


def terms_of(arguments: Mapping[str, Any], definition: Mapping[str, Any] | None) -> str | None:
    """The terms of a call's arguments; None if they would say too little of it.

    Args:
        arguments: the arguments, parsed JSON.
        definition: the tool's published definition; None for an unknown tool.
    """
    schema = (definition or {}).get("inputSchema")
    try:
        terms = "&".join(sorted(set(_Terms(schema).of_object("", arguments, schema, 0))))
        # By the terms alone: calls that differ in what is new are of one family.
        is_long = len(terms) > MAX_CHARS
        return f"sha256={sha256_hex(terms + canonical(arguments))}" if is_long else terms
    except (_Vague, ValueError):
        return None


def class_of(terms: str | None, risk_parts: Iterable[str], history: CallHistory = NO_HISTORY) -> str:
    """The class of a call, or `NO_CLASS`.

    Args:
        terms: of the arguments (`terms_of`); None for those that have none, as a call has none of which some values
            are not looked at.
        risk_parts: the names of the parts of the risk of the tool.
        history: of the call's values. Where they are new or tainted is a part of the class: approvals of new files
            say nothing about new recipients.
    """
    if terms is None or not history.is_whole:
        return NO_CLASS
    paths = {"novel": history.novel, "tainted": set(history.novel) & set(history.tainted)}
    past = [history_part(name, paths[name]) for name in history.parts]
    risk = f"{RISK}{','.join(sorted([*risk_parts, *past]))}"
    return f"{terms}&{risk}" if terms else risk


class _Terms:
    """The terms of one call's arguments; `schema` is the tool's, in which references are looked up."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._left = MAX_VALUES

    def of_object(self, path: str, value: Mapping[str, Any], schema: Any, depth: int) -> Iterator[str]:
        for name, item in value.items():
            place = f"{path}.{_name(name)}" if path else _name(name)
            yield from self._of_value(place, item, self._members(schema, name), depth + 1)

    def _of_value(self, path: str, value: Any, schemas: list[Any], depth: int) -> Iterator[str]:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise _Vague
        if isinstance(value, Mapping):
            if not value:
                yield f"{path}={{}}"
            for schema in schemas or [None]:
                yield from self.of_object(path, value, schema, depth)
        elif isinstance(value, list | tuple):
            yield from self._of_list(path, value, schemas, depth)
        else:
            yield from (f"{path}={said}" for said in self._of_scalar(value, schemas))

    def _of_list(self, path: str, items: Sequence[Any], schemas: list[Any], depth: int) -> Iterator[str]:
        # By their types: a test for mappings takes ten times as long, and a call can have 100,000 items.
        if not _TEXTS_AND_NUMBERS.issuperset(map(type, items)):
            # Which amount goes to whom, which file is to be deleted, which flag is set: nothing coarser says that.
            yield f"{path}=sha256:{sha256_hex(canonical(items))[:DIGEST_CHARS]}"
            return
        if len(items) > self._left:
            raise _Vague
        has_numbers = any(_is_number(item) for item in items)
        # A sum is of so many numbers: nine payments are not two.
        length = str(len(items)) if has_numbers else _magnitude(len(items))
        yield f"{path}#={length}{_repeats(items)}"
        yield from self._of_items(path, items, schemas, depth)

    def _of_items(self, path: str, items: Iterable[Any], schemas: list[Any], depth: int) -> Iterator[str]:
        inner = [part for schema in schemas for part in self._items(schema)]
        kinds = set()
        for item in items:
            kinds.add(frozenset(self._of_value(path, item, inner, depth + 1)))
            if len(kinds) > MAX_KINDS:
                raise _Vague
        for kind in kinds:
            yield from kind

    def _of_scalar(self, value: Any, schemas: list[Any]) -> Iterable[str]:
        if value is None:
            return ("~null",)
        if isinstance(value, bool):
            return ("true" if value else "false",)
        if any(
            value == one for schema in schemas for one in self._listed(schema) if not isinstance(one, bool)
        ):
            # In quotes: a listed `text` is not any text.
            return (f"'{_value(value if isinstance(value, str) else canonical(value))}'",)
        if isinstance(value, int | float):
            return (_magnitude(value),)
        if not (text := value.strip()):
            # To many tools it means everything.
            return ("~blank",)
        if (number := written_number(text)) is not None:
            return (_magnitude(number),)
        if is_like_number(text):
            # Programs read it differently, so that nothing is known of its size.
            return ("~number",)
        return _addresses(value) or ("text",)

    def _members(self, schema: Any, name: str) -> list[Any]:
        """What a schema says of an object's member, also behind references and alternatives."""
        found: list[Any] = []
        for one in self._alternatives(schema):
            named, patterns = one.get("properties"), one.get("patternProperties")
            found += [named.get(name)] if isinstance(named, Mapping) else []
            # Whichever pattern fits: what one lists too much only makes the class say more.
            found += patterns.values() if isinstance(patterns, Mapping) else []
            found += [one.get("additionalProperties"), one.get("unevaluatedProperties")]
        return [part for part in found if isinstance(part, Mapping)]

    def _items(self, schema: Any) -> list[Any]:
        """What a schema says of a list's items, likewise."""
        found: list[Any] = []
        for one in self._alternatives(schema):
            for keyword in _OF_ITEMS:
                said = one.get(keyword)
                found += said if isinstance(said, list) else [said]
        return [part for part in found if isinstance(part, Mapping)]

    def _listed(self, schema: Any) -> list[Any]:
        listed: list[Any] = []
        for one in self._alternatives(schema):
            named = one.get("enum")
            listed += named if isinstance(named, list) else []
            listed += [one["const"]] if "const" in one else []
        return listed

    def _alternatives(self, schema: Any) -> list[Mapping[str, Any]]:
        """A schema, and those that it refers to or is made of.

        Raises:
            _Vague: there are more than are looked at, or one that is not found: it may list what a text can be.
        """
        found: dict[int, Mapping[str, Any]] = {}
        waiting = [schema]
        while waiting:
            one = waiting.pop()
            if not isinstance(one, Mapping) or id(one) in found:
                continue
            if len(found) == MAX_ALTERNATIVES or not _ELSEWHERE.isdisjoint(one):
                raise _Vague
            found[id(one)] = one
            if "$ref" in one:
                waiting.append(self._referred(one["$ref"]))
            for keyword in _MADE_OF:
                said = one.get(keyword)
                waiting += said if isinstance(said, list) else [said]
            dependent = one.get("dependentSchemas")
            waiting += dependent.values() if isinstance(dependent, Mapping) else []
        return list(found.values())

    def _referred(self, reference: Any) -> Any:
        """What a reference within the schema stands for (RFC 6901)."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise _Vague
        found = self._schema
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                raise _Vague
        return found


def _addresses(text: str) -> set[str]:
    """The domains and hosts of the addresses in a text."""
    found: set[str] = set()
    try:
        if is_opaque(_form(text)):
            # Nobody knows which addresses are in it.
            raise _Vague
        for address in addresses_in(text):
            found.add(_term_of(address))
            if len(found) > MAX_ADDRESSES:
                raise _Vague
    except Disputed as error:
        raise _Vague from error
    return found


def _form(text: str) -> str:
    try:
        return plain(text)
    except TooManyWords:
        return text


def _term_of(address: Address) -> str:
    if address.is_mail:
        return f"@{_value(address.place[1:])}"
    # Without a dot it could pass for another term.
    return (
        _value(address.place)
        if "." in address.place or ":" in address.place
        else f"//{_value(address.place)}"
    )


def _magnitude(number: float) -> str:
    """The sign and the power of ten of a number."""
    try:
        size = abs(float(number))
    except OverflowError:
        return "infinite"
    if not math.isfinite(size):
        return "infinite"
    if size == 0:
        return "0"
    # From the decimal text, which is exact: the logarithm of 1000.0 is below 3 on some machines.
    return f"{'-' if number < 0 else ''}1e{int(f'{size:.16e}'.partition('e')[2])}"


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float) or (isinstance(item, str) and is_like_number(item))


def _repeats(items: Iterable[Any]) -> str:
    """How often an item stands in a list at most, if more than once: nine payments of one kind are not two."""
    most = max(Counter(map(canonical, items)).values(), default=1)
    return "" if most == 1 else f"~{most}x"


def _name(text: str) -> str:
    """An argument's name, in which nothing looks like a separator of paths or terms."""
    return _short(quote(text, safe="").replace(".", "%2E").replace("~", "%7E")) or "~"


def _value(text: str) -> str:
    """A value, in which nothing looks like a separator of terms."""
    return _short(quote(text, safe="[]").replace("~", "%7E"))


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:32]}~{sha256_hex(text)[:16]}"
