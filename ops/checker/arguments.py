"""The checker's own reading of a rule's tests of arguments, written apart from `memory.predicates`."""

from __future__ import annotations

from typing import Any

import rfc8785


def is_about(tests: dict[str, Any], arguments: dict[str, Any]) -> bool:
    """Whether arguments have exactly the names that a rule has tests for, and pass them."""
    return set(tests) == set(arguments) and all(_passes(tests[name], arguments[name]) for name in tests)


def _passes(test: dict[str, Any], value: Any) -> bool:
    match test:
        case {"any": True}:
            return True
        case {"equals": wanted}:
            return _same(value, wanted)
        case {"one_of": several}:
            return any(_same(value, wanted) for wanted in several)
        case {"prefix": beginning}:
            return isinstance(value, str) and value.startswith(beginning)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(test.get("at_least", value) <= value <= test.get("at_most", value))


def _same(value: Any, wanted: Any) -> bool:
    return rfc8785.dumps(value) == rfc8785.dumps(wanted)
