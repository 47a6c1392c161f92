"""What `import placet` gives: each type of an answer and each error, under its own name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

import placet
import placet.client
import placet.execution
import placet.human_requests
import placet.resources
import placet.standing_rules
import placet.sync
import placet.vault


@pytest.mark.parametrize("room", ["models", "errors"])
def test_each_public_class_of_a_room_is_exported(room: str) -> None:
    module = import_module(f"placet.{room}")
    own = {
        name
        for name, found in inspect.getmembers(module, inspect.isclass)
        if found.__module__ == module.__name__ and not name.startswith("_")
    }
    assert own
    assert own <= set(placet.__all__)


@pytest.mark.parametrize("name", placet.__all__)
def test_each_exported_name_is_there(name: str) -> None:
    assert getattr(placet, name).__name__ == name


# A name that a GET's own parameters may have, and what a decorator is put on.
WITHOUT_NAMES = {("fetch", "path"), ("gated", "function")}


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Every function and method that a user of the client calls."""
    rooms = [
        placet.client,
        placet.execution,
        placet.human_requests,
        placet.resources,
        placet.standing_rules,
        placet.sync,
        placet.vault,
    ]
    for room in rooms:
        for _, of in inspect.getmembers(room, inspect.isclass):
            if of.__module__.startswith("placet."):
                yield from inspect.getmembers(of, inspect.isfunction)
    yield "gated", placet.gated


def test_each_parameter_of_the_interface_may_be_given_by_name() -> None:
    without = {
        (name, parameter.name)
        for name, function in public_functions()
        if not name.startswith("_") and not name.endswith("_in")
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and parameter.name != "self"
    }
    assert without == WITHOUT_NAMES
