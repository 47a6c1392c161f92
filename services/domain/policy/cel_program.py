"""The program that runs in place of an expression: it replaces the binding's answers that differ from CEL's.

- Computed numbers are checked to be finite, because minus infinity is below every limit. In a chain of `+ - * /`
  without brackets only the result is checked, since no step of it makes an infinite number finite again: its divisors
  are single values, each of which is a literal, an argument, or checked itself. A number that is not finite is passed
  to a function that does not exist, which is a CEL error and takes no longer than any other.
- Operands that the binding accepts and CEL does not are errors too (`cel_operands`).
- `size()` counts the characters of a text; the binding counts bytes.
- `duration()` accepts only what CEL defines: the binding reads `nan` as 0, and `1s 99h` as one second.
- `string()` writes CEL's form, `timestamp()` accepts CEL's form and converts it to UTC, `int()` also takes times, and
  accessors of times (`getHours`) also take a zone (`cel_texts`, `cel_times`). If the operation depends on a value's
  kind, a `map` over one value binds it, so that it is computed once.
- `matches()` runs in RE2, since the binding compiles a pattern at each evaluation: a pattern of thirty characters can
  take it half a second, and a pattern that is small for RE2 may be too large for it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from services.domain.policy.cel_operands import ADDED, NEGATED, Operand, added_values, negated_values
from services.domain.policy.cel_times import checked_timestamp, has_zone
from services.domain.policy.cel_tokens import Token, bound_names, call_arguments, string_value

# The names of these functions in a program; they differ from those of the binding's own functions.
RE2_MATCHES, CODE_POINTS, CHECKED_DURATION = "re2_matches", "code_points", "checked_duration"
CHECKED_TIMESTAMP, WHOLE_SECONDS, IN_ZONE = "checked_timestamp", "whole_seconds", "in_zone"
DOUBLE_TEXT, TIME_TEXT, SPAN_TEXT = "double_text", "time_text", "span_text"
# No function has this name: `cel_failures` explains it.
NOT_FINITE = "number_that_is_not_finite"
# Types are compared with values: a comprehension may have bound the name of a type to a variable.
_FINITE = f"].map(v, type(v) != type(0.0) || v - v == 0.0 ? v : {NOT_FINITE}(v))[0]"
_TEXT = "type('')"
_TIME, _NO_SPAN = "type(timestamp('1970-01-01T00:00:00Z'))", "duration('0s')"
_OF_JSON = f"type(v) == type(0.0) ? {DOUBLE_TEXT}(v) : type(v) == type(true) ? (v ? 'true' : 'false') : "
_OF_SPAN = f"{SPAN_TEXT}(v, string(v), string({_NO_SPAN} - v))"
_OF_TIMES = f"type(v) == {_TIME} ? {TIME_TEXT}(string(v)) : type(v) == type({_NO_SPAN}) ? {_OF_SPAN} : "
_AS_TIME = f"type(v) == {_TEXT} || type(v) == type(0) ? timestamp({CHECKED_TIMESTAMP}(v)) : timestamp(v)"
_AS_INT = f"type(v) == {_TIME} ? {WHOLE_SECONDS}(v) : int(v)"
# Names that may yield a time, directly or as part of a value made from it.
_TIMES = frozenset({"now", "timestamp"})
_ARITHMETIC = frozenset("+-*/%")
_ENDS_CHAIN = frozenset({",", "?", ":", "&&", "||", "==", "!=", "<", "<=", ">", ">="})
_WHOLE = re.compile(r"0[xX][0-9a-fA-F]+[uU]?|[0-9]+[uU]?")
_UNITS_NS = {"h": 3_600e9, "m": 60e9, "s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h)")
_MOST_NS = 9.2e18
_DURATION_MAX_CHARS = 256

Tokens = tuple[Token, ...]


@dataclass(slots=True)
class _Chain:
    """Values joined by operators, within one pair of brackets."""

    start: int
    operators: set[str] = field(default_factory=set)
    # A text or a whole number is among the values: these cannot be joined with a double.
    has_other: bool = False


def checked_values(tokens: Tokens) -> list[tuple[int, int, bool]]:
    """Values that may be a number that is not finite: first token, last token, and if it may be a list or text."""
    found: list[tuple[int, int, bool]] = []
    chains = [_Chain(0)]
    for index, token in enumerate(tokens):
        if _is_call(tokens, index, "double"):
            found.append((index, tokens[index + 1].mate, False))
        if token.kind != "op" and token.text != "in":
            chains[-1].has_other = chains[-1].has_other or _is_other(tokens, index)
        elif token.text in _ENDS_CHAIN or token.text == "in":
            found += _ended(chains.pop(), index - 1)
            chains.append(_Chain(index + 1))
        elif token.mate >= 0:
            chains.append(_Chain(index + 1))
        elif token.text in ")]}":
            found += _ended(chains.pop(), index - 1)
        elif token.text in _ARITHMETIC and _joins(tokens, index, chains[-1].start):
            chains[-1].operators.add(token.text)
    return found + _ended(chains.pop(), len(tokens) - 1)


def _ended(chain: _Chain, last: int) -> list[tuple[int, int, bool]]:
    # The binding has `%` only for whole numbers.
    if not chain.operators or chain.has_other or "%" in chain.operators:
        return []
    return [(chain.start, last, chain.operators == {"+"})]


def _joins(tokens: Tokens, index: int, start: int) -> bool:
    """True if an operator is between two values, and is not the sign of one."""
    return index > start and tokens[index - 1].text not in {*_ARITHMETIC, "!"}


def _is_other(tokens: Tokens, index: int) -> bool:
    if tokens[index].kind == "number":
        return _WHOLE.fullmatch(tokens[index].text) is not None
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    return tokens[index].kind == "string" and following not in (".", "[")


def _is_call(tokens: Tokens, index: int, name: str) -> bool:
    """True if a function, not a method, is called here."""
    is_called = index + 1 < len(tokens) and tokens[index + 1].text == "("
    return is_called and tokens[index].text == name and (index == 0 or tokens[index - 1].text != ".")


def measured_path(tokens: Tokens, index: int) -> tuple[int, int] | None:
    """The first and last token of the path whose `size` is called at `index`; None if it is not a plain path."""
    if tokens[index - 1].text == ".":
        start = path_start(tokens, index - 2)
        is_alone = tokens[index + 1].mate == index + 2
        return None if start is None or not is_alone else (start, index - 2)
    arguments = call_arguments(tokens, index + 1)
    last = tokens[index + 1].mate - 1
    return (index + 2, last) if len(arguments) == 1 and path_start(tokens, last) == index + 2 else None


def path_start(tokens: Tokens, last: int) -> int | None:
    """The first token of the path, such as `args.a["b"][0]`, that ends here; None if no path ends here."""
    index = last
    while index >= 0:
        if tokens[index].text == "]" and index > 2 and tokens[index - 2].mate == index:
            if tokens[index - 1].kind not in ("string", "number"):
                return None
            index -= 3
        elif tokens[index].kind != "name":
            return None
        elif index == 0 or tokens[index - 1].text != ".":
            return index if tokens[index].text not in ("in", "true", "false", "null") else None
        else:
            index -= 2
    return None


def is_size(tokens: Tokens, index: int) -> bool:
    """True if `size` is called here, as a function or as a method."""
    is_called = index + 1 < len(tokens) and tokens[index + 1].text == "("
    return is_called and tokens[index].kind == "name" and tokens[index].text == "size"


def is_size_of_list(tokens: Tokens, index: int) -> bool:
    """True if the `size` called here is of the result of a `map` or `filter`, which is never a text."""
    is_method = index > 0 and tokens[index - 1].text == "."
    last = index - 2 if is_method else tokens[index + 1].mate - 1
    for at in range(1 if is_method else index + 3, last):
        if tokens[at].mate == last:
            return (
                tokens[at - 1].text in ("map", "filter")
                and tokens[at - 2].text == "."
                and (is_method or _is_one_value(tokens, index + 2, at))
            )
    return False


def _is_one_value(tokens: Tokens, start: int, end: int) -> bool:
    """True if there is no operator between these tokens, outside of brackets."""
    index = start
    while index < end:
        if tokens[index].mate >= 0:
            index = tokens[index].mate
        elif tokens[index].kind == "op" and tokens[index].text != ".":
            return False
        index += 1
    return True


def guarded_values(tokens: Tokens) -> list[Operand]:
    """The operands of signs and sums whose kind must be checked."""
    sums = ((start, last) for start, last, is_sum in checked_values(tokens) if is_sum)
    added = (operand for start, last in sums for operand in added_values(tokens, start, last))
    return [*negated_values(tokens), *added]


def _checks(tokens: Tokens) -> Iterator[tuple[int, int, str]]:
    """The checks to insert: first token, last token, and the check."""
    yield from ((start, last, _FINITE) for start, last, _ in checked_values(tokens))
    for operand in guarded_values(tokens):
        # The sign itself is part of the replacement.
        yield (operand.start - 1, operand.last, NEGATED) if operand.is_negated else (*operand[:2], ADDED)


def program_of(tokens: Tokens) -> str | None:
    """The program to run for the expression; None if it runs unchanged."""
    texts = [token.text for token in tokens]
    kinds = kinds_of(tokens)
    before, after = [""] * len(texts), [""] * len(texts)
    # A check that begins later is inside one that began before, so it is closed before it.
    for start, last, check in sorted(_checks(tokens), key=lambda found: (-found[0], found[1])):
        before[start] += "["
        after[last] += check
        if check is NEGATED:
            texts[start] = ""
    for index in range(len(tokens)):
        if is_size(tokens, index) and not is_size_of_list(tokens, index):
            _count_characters(tokens, index, texts)
        elif _is_call(tokens, index, "duration") and not is_plain_duration(tokens, index):
            texts[index + 1] = f"({CHECKED_DURATION}("
            texts[tokens[index + 1].mate] = "))"
        elif (body := by_kind(tokens, index, kinds)) is not None:
            texts[index], texts[tokens[index + 1].mate] = "[", f")].map(v, {body})[0]"
        elif has_zone(tokens, index):
            texts[index : index + 2] = [IN_ZONE, f"('{tokens[index].text}',"]
        elif texts[index - 1 : index + 2] == [".", "matches", "("] and index:
            texts[index] = RE2_MATCHES
    program = " ".join("".join(parts) for parts in zip(before, texts, after, strict=True))
    return None if program == " ".join(token.text for token in tokens) else program


class Kinds(NamedTuple):
    """The facts that tell which values of an expression may be times."""

    bound: set[str]
    has_times: bool


def kinds_of(tokens: Tokens) -> Kinds:
    """Computed once for an expression."""
    has_times = any(token.text in _TIMES and token.kind == "name" for token in tokens)
    return Kinds(bound_names(tokens), has_times)


def by_kind(tokens: Tokens, index: int, kinds: Kinds) -> str | None:
    """The operation on the argument `v` of a call of `string`, `timestamp` or `int` here; None if it is unchanged."""
    name = tokens[index].text
    if name not in ("string", "timestamp", "int") or not _is_call(tokens, index, name):
        return None
    arguments = call_arguments(tokens, index + 1)
    if len(arguments) != 1:
        return None
    if name == "timestamp":
        return None if _is_plain_timestamp(arguments[0]) else _AS_TIME
    is_json = _is_json(arguments[0], kinds.bound)
    if name == "string":
        return _OF_JSON + ("" if is_json else _OF_TIMES) + "string(v)"
    return _AS_INT if kinds.has_times and not is_json else None


def _is_json(value: Tokens, bound: set[str]) -> bool:
    """True if a value is certainly neither a time nor a duration: a literal, or a field of the call."""
    if len(value) == 1 and value[0].kind != "name":
        return True
    return path_start(value, len(value) - 1) == 0 and value[0].text != "now" and value[0].text not in bound


def _is_plain_timestamp(value: Tokens) -> bool:
    """True if it is a literal that is a time in UTC."""
    if [token.kind for token in value] != ["string"]:
        return False
    text = string_value(value[0].text)
    return checked_timestamp(text) == text


def _count_characters(tokens: Tokens, index: int, texts: list[str]) -> None:
    """Only a text is passed out of the binding to be counted, if its type is known without computing it twice."""
    path = measured_path(tokens, index)
    if path is None:
        texts[index] = CODE_POINTS
        return
    value = " ".join(token.text for token in tokens[path[0] : path[1] + 1])
    first, last = min(index, path[0]), tokens[index + 1].mate
    texts[first : last + 1] = [""] * (last + 1 - first)
    texts[first] = f"(type({value}) == {_TEXT} ? {CODE_POINTS}({value}) : size({value}))"


def is_plain_duration(tokens: Tokens, index: int) -> bool:
    """True if a duration is made from a valid literal, so that no call needs a check."""
    arguments = call_arguments(tokens, index + 1)
    is_text = len(arguments) == 1 and [token.kind for token in arguments[0]] == ["string"]
    return is_text and checked_duration(string_value(arguments[0][0].text)) is not None


def checked_duration(text: object) -> str | None:
    """The text if it is a duration as CEL defines it, of at most 292 years; else None, which no function accepts.

    The binding reads `nan` as 0, stops at a space, accepts signs in the middle, and returns its maximum for more.
    """
    if not isinstance(text, str) or len(text) > _DURATION_MAX_CHARS:
        return None
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return text
    total, end = 0.0, 0
    for part in _PART.finditer(unsigned):
        if part.start() != end:
            return None
        total, end = total + float(part.group(1)) * _UNITS_NS[part.group(2)], part.end()
    return text if 0 < end == len(unsigned) and total < _MOST_NS else None


def code_points(value: object) -> int:
    """`size(value)` with the characters of a text; an error is a CEL error, which `error || true` absorbs."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise TypeError("size() takes texts, lists, maps and bytes")
