"""Operands that the binding accepts although CEL has no such operator: they are turned into errors.

- The binding negates a truth value to its opposite: an agent's `true` and `false` would pass for numbers.
- It adds the keys of a map to a list, as if they were values.
"""

from collections.abc import Iterator
from typing import NamedTuple

from services.domain.policy.cel_tokens import Token

# No functions have these names: `cel_failures` explains them.
NEGATED_TRUTH, ADDED_MAP = "truth_value_that_is_negated", "map_that_is_added"
# Types are compared with values: a comprehension may have bound the name of a type to a variable.
NEGATED = f"].map(v, type(v) == type(true) ? {NEGATED_TRUTH}(v) : -v)[0]"
ADDED = f"].map(v, type(v) == type({{}}) ? {ADDED_MAP}(v) : v)[0]"
_BEHIND_VALUE = frozenset({")", "]", "}"})

Tokens = tuple[Token, ...]


class Operand(NamedTuple):
    """A value after an operator: its first token and its last."""

    start: int
    last: int
    is_negated: bool


def is_sign(tokens: Tokens, index: int) -> bool:
    """True if a `-` is the sign of the value after it, and not between two values."""
    if tokens[index].text != "-" or tokens[index].kind != "op":
        return False
    before = tokens[index - 1] if index else None
    return before is None or (before.kind == "op" and before.text not in _BEHIND_VALUE) or before.text == "in"


def negated_values(tokens: Tokens) -> Iterator[Operand]:
    """The values after a sign, except number literals."""
    for index in range(len(tokens) - 1):
        following = tokens[index + 1]
        if is_sign(tokens, index) and following.kind != "number" and following.text != "-":
            yield Operand(index + 1, _value_end(tokens, index + 1), is_negated=True)


def added_values(tokens: Tokens, start: int, last: int) -> Iterator[Operand]:
    """The values added to one before them, in a sum from `start` to `last`, that may be a map."""
    index = start
    while index <= last:
        if tokens[index].mate >= 0:
            index = tokens[index].mate
        elif (
            tokens[index].text == "+" and tokens[index + 1].text != "-" and tokens[index + 1].kind != "number"
        ):
            yield Operand(index + 1, _value_end(tokens, index + 1), is_negated=False)
        index += 1


def _value_end(tokens: Tokens, start: int) -> int:
    """The last token of a value such as `args.a[0].b(c)` that begins here, with its fields, indices and calls."""
    index = tokens[start].mate if tokens[start].mate >= 0 else start
    while index + 1 < len(tokens):
        following = tokens[index + 1]
        if following.text == ".":
            index += 2
        elif following.text in ("(", "["):
            index = following.mate
        else:
            break
    return index
