"""The work of an expression, from its tokens and from the size of the values that it reads.

The binding cannot be interrupted during an evaluation, so every operation is counted in advance, as often as the
comprehensions around it can repeat it. The figures are measured worst cases (docs/policy.md, "Bounded evaluation");
`tests/domain/policy/test_work.py` tests each of them against the time that it stands for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

# A variable and the field of it that is read; None is the whole variable.
Read = tuple[str, str | None]

# A unit is about 0.3 µs. Reading a name or a literal, or an operator, takes 0.1 µs.
_TOKEN = 1 / 3
# One iteration of a comprehension, without its body; and of one that builds a list by copying it at each iteration.
_TURN = 1.0
_COPIED = 1 / 2
_COPIED_PART = 1 / 3
# A list or map that is named is copied as a whole: 0.1 µs a value of a list, 0.2 of a map, and twice on errors.
_NAMED = 1.5
# A call of a Python function, including an exception that it raises.
_CALLED = 60
# A value that is compared or searched for, and each part of it: a map's takes 0.8 µs.
_COMPARED = 3.0
# The check whether a number is finite: 3 µs, for either result.
_CHECKED = 12
# How often that check copies its value, which may be a list or a text: 1.2 to 3 µs a value in all.
CHECKED_COPIES = 7
# The check whether the argument of `size` is a text. Passed to Python, characters outside ASCII take 11 ns a byte.
_TYPE_ASKED = 8
_DECODED = 1 / 24
# A list or map is passed to a Python function: 0.1 µs a value of a list, 1 to 1.4 of a map.
_HANDED = 4
# The values that `+` copies.
_JOINED = 1 / 2
_CHARACTERS = 1 / 256
_SEARCHED = 1 / 64
# Durations and times are parsed character by character, at 0.05 µs.
_PARSED = 1 / 4
# RE2 simulates a pattern if its automaton outgrows its memory: up to 12 ns an instruction and byte.
PROGRAM = 1 / 20
# A number as text: 1e308 has 309 digits.
_NUMBER_CHARS = 330
_HOST_MAX_CHARS, _PATH_MAX_CHARS, _SQL_MAX_CHARS = 254, 4_096, 20_000
_UNSPLIT = frozenset(".,:()]}")


class Size(NamedTuple):
    """The size of an expression's input: `is_odd` if a host in it may be an international name."""

    nodes: int
    characters: int
    is_odd: bool
    # The nodes and characters of each part.
    parts: Mapping[Read, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Work:
    """The operations of an expression by kind, each with the number of comprehensions around it, and named values.

    The work of `steps` is constant, that of `linear` grows with the values, and that of `calls` with texts; a call is
    (depth, function, size of its pattern). `growth` is the factor by which a value made in the expression can be
    larger than the input, `lengthening` that of a text; `makes_ranges` is set if a comprehension iterates over such a
    value instead of an input.
    """

    steps: tuple[tuple[int, float], ...]
    linear: tuple[tuple[int, float], ...]
    named: tuple[tuple[int, Read], ...]
    calls: tuple[tuple[int, str, int], ...]
    literals: int
    literal_characters: int
    longest_literal: int
    growth: float
    lengthening: float
    makes_ranges: bool
    makes_texts: bool

    def cost(self, size: Size) -> float:
        """An upper bound of the work on values of this size; infinity if it overflows."""
        nodes = 1.0 + size.nodes + self.literals
        # A comprehension iterates over an input, unless its range is made in the expression.
        turns = nodes * self.growth if self.makes_ranges else 1.0 + size.nodes
        # A text is an input or a literal, unless an operation joins both.
        characters = float(max(size.characters, self.longest_literal))
        if self.lengthening > 1:
            characters = (size.characters + self.literal_characters) * self.lengthening
        if self.makes_texts:
            characters += _NUMBER_CHARS * nodes * self.lengthening
        values = (nodes + characters * _CHARACTERS) * self.growth
        is_odd = size.is_odd or self.lengthening > 1
        try:
            # Every input is passed to the binding, whatever is done with it.
            total = size.nodes + size.characters * _CHARACTERS
            total += sum(weight * turns**depth for depth, weight in self.steps)
            total += sum(weight * values * turns**depth for depth, weight in self.linear)
            for depth, read in self.named:
                part_nodes, part_characters = size.parts.get(read, (0, 0))
                total += _NAMED * (part_nodes + part_characters * _CHARACTERS) * turns**depth
            for depth, name, program in self.calls:
                total += _call(name, program, characters, values, is_odd) * turns**depth
        except OverflowError:
            return float("inf")
        return total


def _call(name: str, program: int, characters: float, values: float, is_odd: bool) -> float:
    """One call of a function on a text with at most this many characters."""
    match name:
        case "matches":
            return _CALLED + characters * program * PROGRAM
        case "contains":
            return 3 + values + characters * _SEARCHED
        case "duration" | "timestamp":
            return 5 + characters * _PARSED
        case "string_by_kind" | "int_by_kind" | "in_zone_of_now":
            return _CALLED + 2 * _CHECKED + characters * _CHARACTERS
        case "timestamp_by_kind":
            # It reads no text of more than 60 characters, but every text is passed to it.
            return 2 * _CALLED + 2 * _CHECKED + characters * _DECODED
        case "size_of_path":
            return _TYPE_ASKED + characters * (_DECODED if is_odd else _CHARACTERS)
        case "code_points" | "in_zone":
            return _CALLED + characters * _DECODED + values * _HANDED
        case "checked_duration":
            # It reads no text of more than 256 characters.
            return 3 * _CALLED + characters * _DECODED + values * _HANDED
        case "url_host":
            return 100 + (min(characters, _HOST_MAX_CHARS) * 40 if is_odd else 0)
        case "real_path":
            return _CALLED + min(characters, _PATH_MAX_CHARS) / 2
        case "sql_kind":
            # For some texts with brackets, the time grows with the square of the length.
            read = min(characters, _SQL_MAX_CHARS)
            return 500 + read * 200 + read * read * 8
    return 3 + characters * _CHARACTERS


TEXT_CALLS = frozenset(
    {
        *("matches", "contains", "startsWith", "endsWith", "duration", "timestamp", "url_host", "real_path"),
        *("sql_kind", "size", "string", "bytes", "int", "uint", "double"),
    }
)


def step_weight(kind: str, text: str) -> float:
    """The work of a token by itself."""
    return 0.0 if kind == "op" and text in _UNSPLIT else _TOKEN


def linear_weight(text: str) -> float:
    """The work of an operator for each part of its operands."""
    return _JOINED if text == "+" else _COMPARED


def checked_weight() -> float:
    """The work to check whether a number is finite."""
    return _CHECKED


def turns_of(depth: int) -> tuple[int, float]:
    """The work of a comprehension without its body."""
    return depth + 1, _TURN


def copies_of(depth: int) -> tuple[int, float]:
    """The work of a comprehension that builds a list by copying it at each value."""
    return depth + 2, _COPIED


def parts_copied(depth: int, makes_values: bool) -> list[tuple[int, float]]:
    """The work for the parts of these values: those of the input, or each as large as a value can be."""
    parts = [(depth + 1, _COPIED_PART), (depth + 2, _COPIED_PART)]
    return parts if makes_values else parts[:1]


def named_weight() -> float:
    """The work of naming the variable of a comprehension, for each part of its range."""
    return _NAMED


def growth_of(joins: int, has_map: bool) -> float:
    """The factor by which `+` and lists can enlarge a value; with maps after each other, each may double it."""
    return 2.0 ** min(joins, 500) if has_map else 1.0 + joins


def merged(weights: Iterable[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """The weights, summed by depth."""
    found: dict[int, float] = {}
    for depth, weight in weights:
        found[depth] = found.get(depth, 0.0) + weight
    return tuple(sorted(found.items()))
