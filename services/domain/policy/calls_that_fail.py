"""Parts of a condition that compile but fail for every call: publishing refuses them.

Policies in force are not checked: one that an earlier version published stays readable, and holds.
"""

from collections.abc import Iterator

from schemas.plain_words import nearest
from schemas.policy_document import PolicyDocument, conditions_of
from schemas.policy_problems import Problem
from services.domain.policy.cel_program import checked_duration
from services.domain.policy.cel_times import ACCESSORS, checked_timestamp, zone_names, zone_of
from services.domain.policy.cel_tokens import (
    Token,
    Unreadable,
    bound_names,
    call_arguments,
    only_text,
    tokenize,
)

_TEXTS = {
    "timestamp": (checked_timestamp, "time", "2026-01-05T12:00:00Z"),
    "duration": (checked_duration, "duration", "1h30m"),
}
# Tokens after which `null` is a value of its own: after others it is an operator's operand.
_BEGINS_VALUE = frozenset({"(", "[", ",", "?", ":", "&&", "||"})

Tokens = tuple[Token, ...]


def failing_calls(document: PolicyDocument) -> Iterator[Problem]:
    """A problem for each invalid quoted time, duration and zone, and for operations that the binding lacks."""
    for path, condition in conditions_of(document):
        for message in _messages(condition):
            yield Problem(path=path, code="invalid", message=message)


def _messages(condition: str) -> Iterator[str]:
    try:
        tokens = tokenize(condition)
    except Unreadable:
        # It does not compile; the compiler reports that.
        return
    for index in range(len(tokens) - 1):
        if tokens[index + 1].text == "(" and tokens[index].kind == "name":
            is_method = index > 0 and tokens[index - 1].text == "."
            yield from (_of_zone if is_method else _of_text)(tokens, index)
        yield from _of_null(tokens, index)
    yield from _of_times_behind(tokens)


def _of_text(tokens: Tokens, index: int) -> Iterator[str]:
    name = tokens[index].text
    if name in _TEXTS and (text := only_text(tokens, index + 1)) is not None:
        read, what, example = _TEXTS[name]
        if read(text) is None:
            yield f"{text!r} is not a {what}; write it as {name}('{example}')"


def _of_zone(tokens: Tokens, index: int) -> Iterator[str]:
    name = tokens[index].text
    if name not in ACCESSORS or not call_arguments(tokens, index + 1):
        return
    zone = only_text(tokens, index + 1)
    if zone is None:
        yield f"{name}() takes a zone as one text in quotes, such as {name}('Europe/Berlin') or {name}('+01:00')"
        return
    try:
        zone_of(zone)
    except ValueError:
        near = nearest(zone, zone_names())
        advice = f"did you mean {near!r}?" if near else "write one such as 'Europe/Berlin' or '+01:00'"
        yield f"there is no time zone {zone!r}; {advice}"


def _of_times_behind(tokens: Tokens) -> Iterator[str]:
    """CEL can add a time to a duration, but the binding only a duration to a time."""
    bound = bound_names(tokens)
    for index in range(len(tokens) - 1):
        is_duration = tokens[index].text == "duration" and tokens[index + 1].text == "("
        if not is_duration or (index > 0 and tokens[index - 1].text == "."):
            continue
        plus = tokens[index + 1].mate + 1
        if plus + 1 < len(tokens) and tokens[plus].text == "+" and _is_time(tokens, plus + 1, bound):
            time = "now" if tokens[plus + 1].text == "now" else "timestamp(…)"
            yield f"a time cannot be added to a duration; write the time first: {time} + duration(…)"


def _is_time(tokens: Tokens, index: int, bound: set[str]) -> bool:
    """True if the value here is a time, with no method called on it."""
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if tokens[index].kind != "name":
        return False
    if tokens[index].text == "now":
        return "now" not in bound and following not in (".", "(")
    if tokens[index].text != "timestamp" or following != "(":
        return False
    end = tokens[index + 1].mate + 1
    return end >= len(tokens) or tokens[end].text != "."


def _of_null(tokens: Tokens, index: int) -> Iterator[str]:
    is_value = index == 0 or tokens[index - 1].text in _BEGINS_VALUE
    if is_value and [token.text for token in tokens[index : index + 3]] == ["null", "in", "{"]:
        yield "null cannot be a key of a map; leave this out, or use a list"
