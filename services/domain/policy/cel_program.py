"""The program that is run for an expression: where the binding's own answers are not CEL's, others take their place.

- What is computed is checked to be finite: minus infinity is under every limit. Of a chain of `+ - * /` without
  brackets only the result is checked, since no step of it makes an infinite number finite again: what it divides by
  is a single value, which is a literal, an argument, or checked itself. What is not finite calls a function that does
  not exist, which is an error of CEL's own and takes no longer than any other.
- What the binding takes for an operand and CEL does not is an error too (`cel_operands`).
- `size()` counts the characters of a text, which the binding counts in bytes.
- `duration()` takes what CEL defines and no more: the binding reads `nan` as 0, and `1s 99h` as one second.
- `string()` writes what CEL writes, `timestamp()` takes what CEL takes and makes it UTC, `int()` is of times too, and
  what a time is asked (`getHours`) may be asked of a zone (`cel_texts`, `cel_times`). Where a value's kind decides
  what is done, it is bound by a `map` of one value, so that it is computed once.
- `matches()` is of RE2, since the binding compiles a pattern at each evaluation: thirty characters of one may take
  it half a second, and what RE2 takes for small may be too large for it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from services.domain.policy.cel_operands import ADDED, NEGATED, Operand, added_values, negated_values
from services.domain.policy.cel_times import checked_timestamp, has_zone
from services.domain.policy.cel_tokens import Token, bound_names, call_arguments, string_value

# What these are called in a program: the binding has functions of these names already.
RE2_MATCHES, CODE_POINTS, CHECKED_DURATION = "re2_matches", "code_points", "checked_duration"
CHECKED_TIMESTAMP, WHOLE_SECONDS, IN_ZONE = "checked_timestamp", "whole_seconds", "in_zone"
DOUBLE_TEXT, TIME_TEXT, SPAN_TEXT = "double_text", "time_text", "span_text"
# No function has this name: `failures` says what it means.
NOT_FINITE = "number_that_is_not_finite"
# No type by its name, which a comprehension may have given to a variable.
_FINITE = f"].map(v, type(v) != type(0.0) || v - v == 0.0 ? v : {NOT_FINITE}(v))[0]"
_TEXT = "type('')"
_TIME, _NO_SPAN = "type(timestamp('1970-01-01T00:00:00Z'))", "duration('0s')"
_OF_JSON = f"type(v) == type(0.0) ? {DOUBLE_TEXT}(v) : type(v) == type(true) ? (v ? 'true' : 'false') : "
_OF_SPAN = f"{SPAN_TEXT}(v, string(v), string({_NO_SPAN} - v))"
_OF_TIMES = f"type(v) == {_TIME} ? {TIME_TEXT}(string(v)) : type(v) == type({_NO_SPAN}) ? {_OF_SPAN} : "
_AS_TIME = f"type(v) == {_TEXT} || type(v) == type(0) ? timestamp({CHECKED_TIMESTAMP}(v)) : timestamp(v)"
_AS_INT = f"type(v) == {_TIME} ? {WHOLE_SECONDS}(v) : int(v)"
# What may be a time, beside what is made of it.
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
    # A text or a whole number among the values: no double is joined with these.
    has_other: bool = False


def checked_values(tokens: Tokens) -> list[tuple[int, int, bool]]:
    """What may be a number that is not finite: its first token, its last, and whether it may be a list or text."""
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
    # The binding knows `%` of whole numbers only.
    if not chain.operators or chain.has_other or "%" in chain.operators:
        return []
    return [(chain.start, last, chain.operators == {"+"})]


def _joins(tokens: Tokens, index: int, start: int) -> bool:
    """Whether an operator stands between two values, and is no sign of one."""
    return index > start and tokens[index - 1].text not in {*_ARITHMETIC, "!"}


def _is_other(tokens: Tokens, index: int) -> bool:
    if tokens[index].kind == "number":
        return _WHOLE.fullmatch(tokens[index].text) is not None
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    return tokens[index].kind == "string" and following not in (".", "[")


def _is_call(tokens: Tokens, index: int, name: str) -> bool:
    """Whether a function is called here, and no method."""
    is_called = index + 1 < len(tokens) and tokens[index + 1].text == "("
    return is_called and tokens[index].text == name and (index == 0 or tokens[index - 1].text != ".")


def measured_path(tokens: Tokens, index: int) -> tuple[int, int] | None:
    """Where the path begins and ends whose `size` is called at `index`; None where it is of no plain path."""
    if tokens[index - 1].text == ".":
        start = path_start(tokens, index - 2)
        is_alone = tokens[index + 1].mate == index + 2
        return None if start is None or not is_alone else (start, index - 2)
    arguments = call_arguments(tokens, index + 1)
    last = tokens[index + 1].mate - 1
    return (index + 2, last) if len(arguments) == 1 and path_start(tokens, last) == index + 2 else None


def path_start(tokens: Tokens, last: int) -> int | None:
    """Where `args.a["b"][0]`, which ends here, begins; None where something else ends here."""
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
    """Whether `size` is called here, as a function or as a method."""
    is_called = index + 1 < len(tokens) and tokens[index + 1].text == "("
    return is_called and tokens[index].kind == "name" and tokens[index].text == "size"


def is_size_of_list(tokens: Tokens, index: int) -> bool:
    """Whether the `size` that is called here is of what a `map` or `filter` makes, which is no text."""
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
    """Whether no operator stands between these, outside of brackets."""
    index = start
    while index < end:
        if tokens[index].mate >= 0:
            index = tokens[index].mate
        elif tokens[index].kind == "op" and tokens[index].text != ".":
            return False
        index += 1
    return True


def guarded_values(tokens: Tokens) -> list[Operand]:
    """Operands of the signs and sums whose kind is asked for."""
    sums = ((start, last) for start, last, is_sum in checked_values(tokens) if is_sum)
    added = (operand for start, last in sums for operand in added_values(tokens, start, last))
    return [*negated_values(tokens), *added]


def _checks(tokens: Tokens) -> Iterator[tuple[int, int, str]]:
    """What is looked at where it stands: from its first token to its last, and how."""
    yield from ((start, last, _FINITE) for start, last, _ in checked_values(tokens))
    for operand in guarded_values(tokens):
        # The sign itself is part of what is done.
        yield (operand.start - 1, operand.last, NEGATED) if operand.is_negated else (*operand[:2], ADDED)


def program_of(tokens: Tokens) -> str | None:
    """The expression as it is run; None where it is run as it stands."""
    texts = [token.text for token in tokens]
    kinds = kinds_of(tokens)
    before, after = [""] * len(texts), [""] * len(texts)
    # What begins later is inside of what began before, and so closed before it.
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
    """What tells which values of an expression may be times."""

    bound: set[str]
    has_times: bool


def kinds_of(tokens: Tokens) -> Kinds:
    """Looked at once an expression."""
    has_times = any(token.text in _TIMES and token.kind == "name" for token in tokens)
    return Kinds(bound_names(tokens), has_times)


def by_kind(tokens: Tokens, index: int, kinds: Kinds) -> str | None:
    """What is done with the argument `v` of a call of `string`, `timestamp` or `int` here; None where it stays so."""
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
    """Whether a value is surely no time and no duration: a literal, or what is read of the call."""
    if len(value) == 1 and value[0].kind != "name":
        return True
    return path_start(value, len(value) - 1) == 0 and value[0].text != "now" and value[0].text not in bound


def _is_plain_timestamp(value: Tokens) -> bool:
    """Whether it is a literal that is a time in UTC."""
    if [token.kind for token in value] != ["string"]:
        return False
    text = string_value(value[0].text)
    return checked_timestamp(text) == text


def _count_characters(tokens: Tokens, index: int, texts: list[str]) -> None:
    """Only a text leaves the binding to be counted, where it is known to be one without computing it twice."""
    path = measured_path(tokens, index)
    if path is None:
        texts[index] = CODE_POINTS
        return
    value = " ".join(token.text for token in tokens[path[0] : path[1] + 1])
    first, last = min(index, path[0]), tokens[index + 1].mate
    texts[first : last + 1] = [""] * (last + 1 - first)
    texts[first] = f"(type({value}) == {_TEXT} ? {CODE_POINTS}({value}) : size({value}))"


def is_plain_duration(tokens: Tokens, index: int) -> bool:
    """Whether a duration is called of a literal that is one, so that there is nothing to look at in a call."""
    arguments = call_arguments(tokens, index + 1)
    is_text = len(arguments) == 1 and [token.kind for token in arguments[0]] == ["string"]
    return is_text and checked_duration(string_value(arguments[0][0].text)) is not None


def checked_duration(text: object) -> str | None:
    """The text where it is a duration as CEL defines it, of 292 years at most; no function takes what is none.

    The binding reads `nan` as 0, stops at a space, takes signs in the middle, and answers its largest for more.
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
    """`size(value)` with the characters of a text; an error is one of CEL's own, which `error || true` absorbs."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise TypeError("size() takes texts, lists, maps and bytes")
