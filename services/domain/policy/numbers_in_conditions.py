"""Numbers of a condition that compile and fail for each call: whole numbers in arithmetic, and quoted numbers.

It also finds numbers that are searched for among the keys of a map, which are never doubles.

It refuses divisions of two whole numbers that leave a remainder: `9/10` is 0 in CEL, so that `x > 9/10` asks for less
than what it says, without an error.

Only literals directly next to an argument (`args.amount * 2`) are checked: the result of a function or bracket can
be of any type.
"""

import re
from collections.abc import Iterator
from fractions import Fraction

from schemas.policy_document import PolicyDocument, conditions_of
from schemas.policy_problems import Problem, warning
from services.domain.policy.cel_tokens import Token, Unreadable, string_value, tokenize

_NUMBERED = frozenset({"args", "proposed", "trust", "risk"})
_ARITHMETIC = frozenset("+-*/%")
_MULTIPLYING = frozenset("*/%")
_ORDER = frozenset({"<", "<=", ">", ">="})
_WHOLE = re.compile(r"[0-9]+")
_LITERAL = re.compile(r"([0-9]+|0[xX][0-9a-fA-F]+)[uU]?")
_NUMBER = re.compile(r"\s*[-+]?[0-9][0-9_,]*(\.[0-9]+)?\s*")

Tokens = tuple[Token, ...]


def doubtful_numbers(document: PolicyDocument) -> Iterator[Problem]:
    """A warning for each condition that combines a numeric argument with a literal of the wrong type.

    A division of whole numbers that is not exact is an error.
    """
    for path, condition in conditions_of(document):
        try:
            tokens = tokenize(condition)
        except Unreadable:
            # It does not compile; the compiler reports that.
            continue
        for message in _inexact(tokens):
            yield Problem(path=path, code="invalid", message=message)
        for message in _messages(tokens):
            yield warning(path, "doubtful_number", message)


def _inexact(tokens: Tokens) -> Iterator[str]:
    """A message for each division of two whole numbers that leaves a remainder."""
    for index in range(len(tokens) - 2):
        before, divided, operator, by = tokens[index - 1].text if index else "", *tokens[index : index + 3]
        # `args.n / 9 / 10` divides what is before twice.
        if operator.text != "/" or before in _MULTIPLYING:
            continue
        if not (_LITERAL.fullmatch(divided.text) and _LITERAL.fullmatch(by.text)):
            continue
        dividend, divisor = (
            int(one.text.rstrip("uU"), 0 if "x" in one.text.lower() else 10) for one in (divided, by)
        )
        if divisor and dividend % divisor:
            yield _of_division(dividend, divisor)


def _of_division(dividend: int, divisor: int) -> str:
    exact = Fraction(dividend, divisor)
    decimal = f"{dividend / divisor:.15g}"
    advice = decimal if Fraction(decimal) == exact else f"{dividend}.0 / {divisor}.0"
    said = f"{dividend}/{divisor} is a division of whole numbers, which is {dividend // divisor} in CEL"
    return f"{said}; write {advice}"


def _messages(tokens: Tokens) -> Iterator[str]:
    for index, token in enumerate(tokens):
        if token.text == "in":
            yield from _of_keys(tokens, index)
        if token.kind != "op":
            continue
        for path, literal in _beside(tokens, index):
            if token.text in _ARITHMETIC and _WHOLE.fullmatch(literal.text):
                yield _of_arithmetic(path, token.text, literal.text)
            elif token.text in _ORDER and literal.kind == "string":
                yield from _of_order(path, string_value(literal.text))


def _of_arithmetic(path: str, operator: str, number: str) -> str:
    advice = f"int({path}) % {number}" if operator == "%" else f"{number}.0"
    return (
        f"{path} is a double, like every number of a call, and {operator!r} cannot combine it with a whole number; "
        f"this fails in each call, so write {advice}"
    )


def _of_order(path: str, text: str) -> Iterator[str]:
    if _NUMBER.fullmatch(text):
        yield (
            f"{path} is compared with the text {text!r}, which fails if it is a number; "
            "write the number without quotes"
        )


def _of_keys(tokens: Tokens, index: int) -> Iterator[str]:
    path = _path_before(tokens, index)
    following = tokens[index + 1 : index + 3]
    is_map = bool(path) and [token.text for token in following[:1]] == ["{"]
    if is_map and following[-1].kind == "number":
        yield (
            f"{path} is a double, like every number of a call, and cannot be a key of a map; this fails in each "
            f"call, so write a list: {path} in [1, 3]"
        )


def _beside(tokens: Tokens, index: int) -> Iterator[tuple[str, Token]]:
    """An argument on one side of an operator, with the literal on its other side."""
    before, after = _path_before(tokens, index), _path_after(tokens, index)
    if before and index + 1 < len(tokens):
        yield before, tokens[index + 1]
    if after and index > 0:
        yield after, tokens[index - 1]


def _path_before(tokens: Tokens, index: int) -> str:
    """The path, such as `args.a[0].b`, that ends right before an operator; empty if none does."""
    start = index - 1
    while start > 0:
        if tokens[start].text == "]":
            start = next(at for at in range(start, -1, -1) if tokens[at].mate == start) - 1
        elif tokens[start].kind == "name" and tokens[start - 1].text == ".":
            start -= 2
        else:
            break
    return _argument(tokens[max(start, 0) : index])


def _path_after(tokens: Tokens, index: int) -> str:
    """The path that begins right after an operator; empty if none does."""
    end = index + 2
    while end < len(tokens) and tokens[end].text in (".", "["):
        end = end + 2 if tokens[end].text == "." else tokens[end].mate + 1
    is_call = end < len(tokens) and tokens[end].text == "("
    return "" if is_call else _argument(tokens[index + 1 : end])


def _argument(path: Tokens) -> str:
    is_one = len(path) > 1 and path[0].text in _NUMBERED and path[0].kind == "name"
    return "".join(token.text for token in path) if is_one else ""
