"""How much work an expression can be, from its tokens and from how much it reads.

The binding cannot be interrupted while it evaluates, so every operation is counted beforehand, as often as the
comprehensions around it can repeat it. The figures are measured worst cases (docs/policy.md, "Bounded evaluation");
`tests/domain/policy/test_work.py` holds each of them to the time that it stands for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

# A variable and the field of it that is read; None is the whole variable.
Read = tuple[str, str | None]

# A unit is about 0.3 µs. Reading a name or a literal, or an operator, takes 0.1 µs.
_TOKEN = 1 / 3
# One turn of a comprehension, beside what it evaluates; and of one that builds a list by copying it each time.
_TURN = 1.0
_COPIED = 1 / 2
_COPIED_PART = 1 / 3
# A list or map that is named is copied with all in it: 0.1 µs a value of a list, 0.2 of a map, and twice on errors.
_NAMED = 1.5
# A function of Python's own is called, and what it raises is handed on.
_CALLED = 60
# A value that is compared or looked for, and each part of it: a map's takes 0.8 µs.
_COMPARED = 3.0
# Whether a number is finite: 3 µs, whatever the answer.
_CHECKED = 12
# How often that copies what is asked about, which may be a list or a text: 1.2 to 3 µs a value in all.
CHECKED_COPIES = 7
# Whether what `size` is called on is a text. As Python's own, other characters than ASCII take 11 ns a byte.
_TYPE_ASKED = 8
_DECODED = 1 / 24
# A list or map is handed to a function of Python's own: 0.1 µs a value of a list, 1 to 1.4 of a map.
_HANDED = 4
# What `+` copies.
_JOINED = 1 / 2
_CHARACTERS = 1 / 256
_SEARCHED = 1 / 64
# Durations and times are parsed character by character, at 0.05 µs.
_PARSED = 1 / 4
# RE2 simulates a pattern where its automaton outgrows its memory: up to 12 ns an instruction and byte.
PROGRAM = 1 / 20
# A number as text: 1e308 has 309 digits.
_NUMBER_CHARS = 330
_HOST_MAX_CHARS, _PATH_MAX_CHARS, _SQL_MAX_CHARS = 254, 4_096, 20_000
_UNSPLIT = frozenset(".,:()]}")


class Size(NamedTuple):
    """What an expression reads of a call: `is_odd` where a host in it may be an international name."""

    nodes: int
    characters: int
    is_odd: bool
    # The nodes and characters of each part.
    parts: Mapping[Read, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Work:
    """The operations of an expression, each kind with how many comprehensions are around it, and what each names.

    `steps` take the same whatever they are on, `linear` grow with the values, `calls` with texts; a call is (depth,
    function, size of its pattern). `growth` is how many times larger than what is read a value can be made,
    `lengthening` how many times longer a text;
    `makes_ranges` where a comprehension goes through such a value, and not through what is read.
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
        """The most units of work on values of this size; infinite where that is no number any more."""
        nodes = 1.0 + size.nodes + self.literals
        # A comprehension goes through what was read, unless its range is made in the expression.
        turns = nodes * self.growth if self.makes_ranges else 1.0 + size.nodes
        # A text is one that is read or a literal, unless something makes one of both.
        characters = float(max(size.characters, self.longest_literal))
        if self.lengthening > 1:
            characters = (size.characters + self.literal_characters) * self.lengthening
        if self.makes_texts:
            characters += _NUMBER_CHARS * nodes * self.lengthening
        values = (nodes + characters * _CHARACTERS) * self.growth
        is_odd = size.is_odd or self.lengthening > 1
        try:
            # All that is read is handed over, whatever is done with it.
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
    """One call of a function on a text of so many characters at most."""
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
            # It reads no text of more than 60 characters, but each is handed over.
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
            # Some texts of brackets take a time that grows with the square of their length.
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
    """What a token takes by itself."""
    return 0.0 if kind == "op" and text in _UNSPLIT else _TOKEN


def linear_weight(text: str) -> float:
    """What an operator takes for each part of the values that it is on."""
    return _JOINED if text == "+" else _COMPARED


def checked_weight() -> float:
    """What it takes to see whether a number is finite."""
    return _CHECKED


def turns_of(depth: int) -> tuple[int, float]:
    """What a comprehension takes beside what it evaluates."""
    return depth + 1, _TURN


def copies_of(depth: int) -> tuple[int, float]:
    """What a comprehension takes that builds a list, by copying it with each value."""
    return depth + 2, _COPIED


def parts_copied(depth: int, makes_values: bool) -> list[tuple[int, float]]:
    """What it takes for the parts of these values: of what is read, or each of them as large as a value can be."""
    parts = [(depth + 1, _COPIED_PART), (depth + 2, _COPIED_PART)]
    return parts if makes_values else parts[:1]


def named_weight() -> float:
    """What naming the value of a comprehension takes, for each part of what it goes through."""
    return _NAMED


def growth_of(joins: int, has_map: bool) -> float:
    """How many times larger `+` and lists of values make one: where maps follow on each other, each may double it."""
    return 2.0 ** min(joins, 500) if has_map else 1.0 + joins


def merged(weights: Iterable[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """The weights with those of one depth added up."""
    found: dict[int, float] = {}
    for depth, weight in weights:
        found[depth] = found.get(depth, 0.0) + weight
    return tuple(sorted(found.items()))
