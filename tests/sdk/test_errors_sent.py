"""Errors and answers that leave their process, by pickle and copy, or are kept in sets."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from inspect import Parameter, signature
from multiprocessing import get_context
from pkgutil import walk_packages
from typing import Any

import pytest

import placet
from placet import HITLPending, HumanRequest, PlacetError, ResultNotReported, ToolCall
from placet.parsing import parse

CALL = ToolCall(
    "run", "call", "denied", tool="send_money", arguments={"amount": 98.7}, raw={"feedback": "no"}
)
REQUEST = HumanRequest("request", hold_id="hold", options=({"id": "a"},), raw={"kind": "decision"})
# A value for each parameter of an error's `__init__`, by the parameter's name.
VALUES: dict[str, Any] = {
    "call": CALL,
    "request": REQUEST,
    "status": 409,
    "waited_s": 1.5,
    "output": {"id": 7},
}


def every_error() -> Iterator[type[PlacetError]]:
    for found in walk_packages(placet.__path__, "placet."):
        if found.name.rpartition(".")[2] != "__main__":
            import_module(found.name)
    waiting = [PlacetError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.split(".")[0] == "placet":
            yield kind


def made(kind: type[PlacetError]) -> PlacetError:
    if kind.__init__ is Exception.__init__:
        return kind("why")
    parameters = list(signature(kind.__init__).parameters.values())[1:]
    return kind(
        *[VALUES.get(one.name, f"the {one.name}") for one in parameters if one.default is Parameter.empty]
    )


def pickled(error: PlacetError) -> PlacetError:
    found: PlacetError = pickle.loads(pickle.dumps(error))
    return found


KINDS = list(dict.fromkeys(every_error()))


@pytest.mark.parametrize("sent", [pickled, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_arrives_with_its_type_text_and_attributes(
    kind: type[PlacetError], sent: Callable[[PlacetError], PlacetError]
) -> None:
    error = made(kind)
    error.__notes__ = ["in the nightly run"]  # as `add_note` of Python 3.11
    arrived = sent(error)
    assert type(arrived) is kind
    assert (str(arrived), arrived.args, arrived.acts) == (str(error), error.args, error.acts)
    assert vars(arrived) == vars(error)
    assert vars(arrived)


def test_errors_of_all_rooms_were_found() -> None:
    assert len(KINDS) > 35
    assert {HITLPending, ResultNotReported} < set(KINDS)


def asks() -> None:
    raise HITLPending(REQUEST)


def test_process_pool_returns_the_error_and_goes_on() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for _ in range(2):
            with pytest.raises(HITLPending) as raised:
                pool.submit(asks).result(60)
            assert raised.value.request == REQUEST


MODELS = [
    found
    for room in ("models", "chat_models", "tool_models")
    for found in vars(import_module(f"placet.{room}")).values()
    if dataclasses.is_dataclass(found) and isinstance(found, type)
]


@pytest.mark.parametrize("kind", list(dict.fromkeys(MODELS)), ids=lambda kind: kind.__name__)
def test_every_answer_can_be_in_a_set_and_be_sent(kind: type[Any]) -> None:
    one, other = filled(kind), filled(kind)
    assert {one, other} == {one}
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def filled(kind: type[Any]) -> Any:
    """An answer whose JSON parts are all objects and lists, which cannot be hashed."""
    if kind is placet.Page:
        return placet.Page(items=(filled(placet.Hold),))
    hints = typing.get_type_hints(kind)
    return parse(kind, {field.name: _value(hints[field.name]) for field in dataclasses.fields(kind)})


def _value(hint: Any) -> Any:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if type(None) in inner:
        return _value(next(one for one in inner if one is not type(None)))
    if origin is tuple:
        return [_value(inner[0])]
    if dataclasses.is_dataclass(hint):
        return {
            field.name: _value(typing.get_type_hints(hint)[field.name]) for field in dataclasses.fields(hint)
        }
    if hint in (str, int, float, bool):
        return hint()
    return "2026-03-01T10:00:00Z" if getattr(hint, "__name__", "") == "datetime" else {"a": [1]}
