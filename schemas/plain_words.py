"""Validation errors in the terms of the document's author: texts, numbers and lists, not a language's types."""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from schemas.ids import CHOSEN_ID

SHOWN_MAX_CHARS = 60
_NEEDED = {
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of fields to values",
    "model_type": "a mapping of fields to values",
    "model_attributes_type": "a mapping of fields to values",
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "none_required": "null",
    "timezone_aware": "a time with its offset, such as 2026-01-05T12:00:00Z",
    "datetime_type": "a time such as 2026-01-05T12:00:00Z",
    "datetime_parsing": "a time such as 2026-01-05T12:00:00Z",
    "datetime_from_date_parsing": "a time such as 2026-01-05T12:00:00Z",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "string_too_short": "a text of at least {min_length} character(s)",
    "string_too_long": "a text of at most {max_length} characters",
    "too_short": "at least {min_length} item(s)",
    "too_long": "at most {max_length} items",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
}
# In words, because a pattern of this length is not readable.
_OF_PATTERN = {f"^{CHOSEN_ID}$": "an id of 1 to 128 of A-Za-z0-9._:- (neither . nor ..)"}
_NUMBER_ERRORS = ("int_", "float_", "finite_")
_NUMBERS = ("a whole number", "a number")


def needed(error: Mapping[str, Any]) -> str | None:
    """What is needed at the place of a validation error; None if the error's own message says it."""
    form, given = _NEEDED.get(error["type"]), error.get("ctx", {})
    if form is None:
        return None
    return _OF_PATTERN.get(str(given.get("pattern")), form.format(**given))


def sentence(errors: Iterable[Mapping[str, Any]]) -> str:
    """One sentence on a value, from its validation errors: there is one for each allowed form."""
    every = list(errors)
    wanted = list(dict.fromkeys(need for error in every if (need := needed(error)) is not None))
    if not wanted:
        return str(every[0]["msg"])
    if set(_NUMBERS) <= set(wanted):
        wanted.remove(_NUMBERS[0])
    return f"{' or '.join(wanted)} is needed here"


def by_place(errors: Iterable[Mapping[str, Any]]) -> dict[tuple[int | str, ...], list[Mapping[str, Any]]]:
    """Validation errors by place; the errors of both forms of a number are joined under one place."""
    found: dict[tuple[int | str, ...], list[Mapping[str, Any]]] = {}
    for error in errors:
        place = tuple(error["loc"])
        is_form = place[-1:] in (("int",), ("float",)) and error["type"].startswith(_NUMBER_ERRORS)
        found.setdefault(place[:-1] if is_form else place, []).append(error)
    return found


def shown(value: Any) -> str:
    """A value as JSON, cut if it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= SHOWN_MAX_CHARS else f"{text[: SHOWN_MAX_CHARS - 3]}..."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to a name, ignoring case; None if none is similar."""
    by_case = {one.casefold(): one for one in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.casefold(), list(by_case), n=1)
    return by_case[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when something known is near, else `; remove it`."""
    near = nearest(name, known)
    return "; remove it" if near is None else f"; did you mean {near!r}?"
