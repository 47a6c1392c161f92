"""Tests of a call's arguments against a standing rule. Arguments that do not clearly pass a test fail it."""

import re
from collections.abc import Mapping
from typing import Any

from schemas.canonical import canonical
from schemas.standing_rule import ArgumentTest
from services.domain.plain import is_plain

# The keys of the object that replaces a sensitive value (docs/secrets.md).
SEALED = frozenset({"handle", "commitment"})
# Types that may contain a sensitive value, or be one.
_HOLDING = (dict, list)
# Some parsers end a path segment at these characters, drop spaces, and read more dots like two.
_STEP_BACK = re.compile(r"(^|[/?#;&=,:])\.{2,}($|[/?#;&=,:])")


def fits(tests: Mapping[str, ArgumentTest], arguments: Any) -> bool:
    """True if arguments have exactly the tested names, and each passes its test."""
    if not isinstance(arguments, Mapping) or arguments.keys() != tests.keys():
        return False
    return all(passes(test, arguments[name]) for name, test in tests.items())


def passes(test: ArgumentTest, value: Any) -> bool:
    """True if a value passes one test."""
    named = test.model_fields_set
    if "any" in named:
        return True
    if "equals" in named:
        return canonical(value) == canonical(test.equals)
    if test.one_of is not None:
        return canonical(value) in map(canonical, test.one_of)
    if test.prefix is not None:
        return isinstance(value, str) and _begins(value, test.prefix)
    return _within(test, value)


def _begins(text: str, prefix: str) -> bool:
    """True if every parser sees this prefix of a text: the text is plain, and no segment of it leads back."""
    return text.startswith(prefix) and is_plain(text) and _STEP_BACK.search(text.replace(" ", "")) is None


def _within(test: ArgumentTest, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    above = test.at_least is None or value >= test.at_least
    return above and (test.at_most is None or value <= test.at_most)


def exactly(arguments: Mapping[str, Any]) -> dict[str, ArgumentTest]:
    """The tests that these arguments pass, and no others."""
    return {name: ArgumentTest(equals=value) for name, value in arguments.items()}


def fixed_values(test: ArgumentTest | None) -> tuple[Any, ...]:
    """The values that a test lists one by one; none if it allows a range."""
    if test is None:
        return ()
    if "equals" in test.model_fields_set:
        return (test.equals,)
    return test.one_of or ()


def has_sealed(value: Any) -> bool:
    """True if a sensitive value is anywhere inside: nobody can see what a test of it would accept."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            if one.keys() == SEALED:
                return True
            pending += [part for part in one.values() if isinstance(part, _HOLDING)]
        elif isinstance(one, list):
            pending += [part for part in one if isinstance(part, _HOLDING)]
    return False
