"""What `import placet` gives: each type of an answer and each error, under its own name."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

import placet


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
