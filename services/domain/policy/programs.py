r"""The total size of a policy's patterns as RE2 programs: the work of every decider to compile them.

Twenty characters can be a program of ten thousand instructions (`\pL{100}`), so the length of a document does not
limit it. Policies in force are not measured.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from schemas.linear_patterns import PatternRefused, PatternTooLarge, bounded_size, glob_size
from schemas.policy_document import PolicyDocument, Rule, conditions_of
from schemas.policy_problems import Problem
from services.domain.policy.cel_shape import patterns_of
from services.domain.policy.cel_tokens import Unreadable, tokenize

# An instruction takes about 0.3 µs to compile, the most expensive ones 3 µs. A plain `https://[a-z.]+/` has nine.
MATCHES_MAX = 200_000
# For one pattern of matches(): on a text of 1,000 characters it is 250,000 units of work at worst.
PATTERN_MAX = 5_000
# `mcp__github__*` has eleven, a question mark seven.
TOOLS_MAX = 300_000
# The assumed size of a pattern whose program exceeds the engine's memory, so that the engine gives up.
REFUSED = 10_000


class _Sized(NamedTuple):
    """A part of the document with the size of its patterns."""

    path: str
    size: int


def program_problems(document: PolicyDocument) -> tuple[Problem, ...]:
    """The problems of a document's patterns that are too large together to be compiled; measuring stops there."""
    kinds = (
        (
            _of_conditions(document),
            PATTERN_MAX,
            MATCHES_MAX,
            "the patterns of matches() in a policy's conditions",
        ),
        (_of_tools(document.rules), TOOLS_MAX, TOOLS_MAX, "the tool patterns of a policy's rules"),
    )
    found = (_too_large(*kind) for kind in kinds)
    return tuple(problem for problem in found if problem is not None)


def _too_large(sizes: Iterable[_Sized], each: int, most: int, what: str) -> Problem | None:
    total = 0
    largest = _Sized("", 0)
    for sized in sizes:
        if each < sized.size:
            message = (
                f"a pattern has at most {each} instructions of RE2, and this one has {_shown(sized.size)}; shorten "
                "its repetitions and classes: `.{600}` has 4,801, a length is tested by size(args.a) <= 600"
            )
            return Problem(path=sized.path, code="too_large", message=message)
        total += sized.size
        largest = max(largest, sized, key=lambda one: one.size)
        if total > most:
            message = (
                f"{what} have at most {most} instructions together, and exceed that at {sized.path}; shorten "
                f"this one first ({largest.size}): its repetitions, classes and question marks; or split the policy"
            )
            return Problem(path=largest.path, code="too_large", message=message)
    return None


def _shown(size: int) -> str:
    return "more" if size >= REFUSED else str(size)


def _of_conditions(document: PolicyDocument) -> Iterator[_Sized]:
    for path, condition in conditions_of(document):
        if "matches" in condition:
            for pattern in _patterns(condition):
                yield _Sized(path, _size(bounded_size, pattern))


def _patterns(condition: str) -> list[str]:
    try:
        return list(patterns_of(tokenize(condition)))
    except Unreadable:
        # It does not compile; the compiler reports that.
        return []


def _of_tools(rules: Iterable[Rule]) -> Iterator[_Sized]:
    for index, rule in enumerate(rules):
        for key, patterns in (("tools", rule.match.tools), ("tools_like", rule.match.tools_like)):
            for number, pattern in enumerate(patterns or ()):
                yield _Sized(f"rules[{index}].match.{key}[{number}]", _size(glob_size, pattern))


def _size(measured: Callable[[str], int], pattern: str) -> int:
    try:
        return measured(pattern)
    except PatternTooLarge:
        return REFUSED
    except PatternRefused:
        # It is not a pattern; the compiler reports that. The engine finds that before it makes a program.
        return 0
