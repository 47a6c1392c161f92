"""Lists that an agent gives: a text or a dict in place of one would be taken apart into its characters or keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def checked_list(given: Sequence[Any], name: str) -> list[Any]:
    """The items of an argument that is a list.

    Args:
        given: the argument.
        name: its name.

    Raises:
        TypeError: it is a text or a dict; the message says what to give.
    """
    if isinstance(given, str | bytes | Mapping):
        raise TypeError(f"{name} is a list: give [{given!r}] instead of {given!r}")
    return list(given)


def check_variables(variables: Sequence[Any]) -> None:
    """Refuse what is neither the name of a variable nor a dict about one.

    Raises:
        TypeError: one of them is something else, such as a list of names.
    """
    for one in variables:
        if not isinstance(one, str | Mapping):
            raise TypeError(
                f'a variable is a name or a dict with one, not {one!r}: give ask_env("KEY", "REGION")'
            )
        if isinstance(one, Mapping) and not isinstance(one.get("name"), str):
            raise TypeError(f"a variable that is a dict has a name, a text: {dict(one)!r}")
