"""The class of a call: what a decision on it says about later calls, in coarse terms.

A class names the arguments whose kind matters and the risk, as `name=value` joined by `&`:
`amount=1e2&to=@example.com&risk=money,novel:to,writes`. The risk has the paths of new and of tainted values
(`schemas.trust_family`). For each argument:

* a flag: its value; nothing: `~null`, an empty object: `{}`, and a blank text: `~blank`; a number, also one that is
  written as a text: its sign and power of ten (`1e2` from 100 to below 1,000, `-1e0` from −1 to above −10);
* a text that programs read as different numbers: `~` and its form (`~9.999`);
* what the published schema lists (`enum`, `const`): itself, in quotes;
* a text that may be shown as another one (`services.domain.prose`; where no prose is expected, one with markup,
  `services.domain.markup`), or has an address that programs could read differently: a digest of it, which only equal
  texts share;
* any other text: the domains (`@example.com`) and hosts of the addresses in it, and its strong codes: in prose the
  names of hosts and files, `~iban` and `~code`, elsewhere `~name` and `~code`; where it is no prose, and may be an
  amount with a unit: `~` and the text, with powers of ten as its numbers (`~$1e1`); of an id or path in such a text,
  the power of ten of its numbers (`~#1e1`); `text` if it has none of these;
* a list: the power of ten of its length (`to#=1e0`), with numbers in it the length itself, how often an item is
  repeated at most (`to#=1e0~2x`), and the terms of its items; a list with objects, lists, flags or nothing in it, or
  with items of too many kinds: a digest of it.

Calls are in no class if a class would say too little of them: deep nesting, too many values, a schema that is not
read as a whole. A class that would be long is a digest of it and of the arguments, which only equal calls share.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from schemas.call_history import NO_HISTORY, CallHistory
from schemas.canonical import canonical, sha256_hex
from schemas.trust_family import RISK, history_part
from services.domain.policy.class_values import digest_of, magnitude, name_of, value_of
from services.domain.policy.described import Described, Descriptions, Vague
from services.domain.policy.leaves import is_of_program
from services.domain.policy.quantities import amount_term
from services.domain.policy.text_terms import terms_of_text
from services.domain.policy.written_numbers import is_like_number, written_number

logger = logging.getLogger(__name__)
NO_CLASS = ""
MAX_CHARS = 300
MAX_DEPTH = 4
# The values of a call that are looked at, and the kinds of items of a list.
MAX_VALUES = 200
MAX_KINDS = 4
_TEXTS_AND_NUMBERS = frozenset((str, int, float))


def terms_of(arguments: Mapping[str, Any], definition: Mapping[str, Any] | None) -> str | None:
    """The terms of a call's arguments; None if they would say too little of it.

    Args:
        arguments: the arguments, parsed JSON.
        definition: the tool's published definition; None for an unknown tool.
    """
    schema = (definition or {}).get("inputSchema")
    try:
        terms = "&".join(
            sorted(set(_Terms().of_object((), "", arguments, Descriptions(schema).of_call(), 0)))
        )
        # By the terms alone: calls that differ in what is new are of one family.
        is_long = len(terms) > MAX_CHARS
        return f"sha256={sha256_hex(terms + canonical(arguments))}" if is_long else terms
    except (Vague, ValueError):
        return None
    except Exception:
        # Whatever is wrong with it, the call is asked about, and other calls are decided.
        logger.exception("a call was put in no class")
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
    """The terms of one call's arguments."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def of_object(
        self, names: tuple[str, ...], path: str, value: Mapping[str, Any], described: Described, depth: int
    ) -> Iterator[str]:
        # As `leaves_of` says of what is in them.
        names = (*names, "code") if is_of_program(value) else names
        for name, item in value.items():
            place = f"{path}.{name_of(name)}" if path else name_of(name)
            yield from self._of_value((*names, name), place, item, described.member(name), depth + 1)

    def _of_value(
        self, names: tuple[str, ...], path: str, value: Any, described: Described, depth: int
    ) -> Iterator[str]:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise Vague
        if isinstance(value, Mapping):
            if not value:
                yield f"{path}={{}}"
            yield from self.of_object(names, path, value, described, depth)
        elif isinstance(value, list | tuple):
            yield from self._of_list(names, path, value, described, depth)
        else:
            yield from (f"{path}={said}" for said in _of_scalar(names, value, described))

    def _of_list(
        self, names: tuple[str, ...], path: str, items: Sequence[Any], described: Described, depth: int
    ) -> Iterator[str]:
        # By their types: a test for mappings takes ten times as long, and a call can have 100,000 items.
        if not _TEXTS_AND_NUMBERS.issuperset(map(type, items)):
            # Which amount goes to whom, which file is to be deleted, which flag is set: nothing coarser says that.
            yield f"{path}={digest_of(items)}"
            return
        if len(items) > self._left:
            raise Vague
        inner, kinds = described.items, set[frozenset[str]]()
        for item in items:
            kinds.add(frozenset(self._of_value(names, path, item, inner, depth + 1)))
        if len(kinds) > MAX_KINDS:
            yield f"{path}={digest_of(items)}"
            return
        has_numbers = any(_is_number(item) for item in items)
        # A sum is of so many numbers: nine payments are not two.
        length = str(len(items)) if has_numbers else magnitude(len(items))
        yield f"{path}#={length}{_repeats(items)}"
        for kind in kinds:
            yield from kind


def _of_scalar(names: Sequence[str], value: Any, described: Described) -> Iterable[str]:
    if value is None:
        return ("~null",)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if described.lists(value):
        # In quotes: a listed `text` is not any text.
        return (f"'{value_of(value if isinstance(value, str) else canonical(value))}'",)
    if isinstance(value, int | float):
        return (magnitude(value),)
    if not (text := value.strip()):
        # To many tools it means everything.
        return ("~blank",)
    if (number := written_number(text)) is not None:
        return (magnitude(number),)
    # Of a number that programs read differently the form is known, but not the size.
    return (amount_term(text),) if is_like_number(text) else terms_of_text(names, value)


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float) or (isinstance(item, str) and is_like_number(item))


def _repeats(items: Iterable[Any]) -> str:
    """How often an item stands in a list at most, if more than once: nine payments of one kind are not two."""
    most = max(Counter(map(canonical, items)).values(), default=1)
    return "" if most == 1 else f"~{most}x"
