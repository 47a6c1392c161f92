"""Converts between a Python function's arguments and a JSON object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from placet.bodies import CannotBeGated, check_runs_when_called
from placet.canonical import canonical, check_json, parse_strict
from placet.errors import ApprovedArgumentsRejected


@dataclass(frozen=True)
class Binding:
    """A function whose arguments can be expressed as a JSON object."""

    function: Callable[..., Any]
    signature: inspect.Signature

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Binding:
        """Bind a function.

        Raises:
            CannotBeGated: a parameter has no name of its own (`*args`), or the function is a generator function.
        """
        check_runs_when_called(function, _name(function))
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                raise CannotBeGated(
                    f"{_name(function)} takes *{parameter.name}: a gated function's arguments need names"
                )
        return cls(function, signature)

    @property
    def name(self) -> str:
        """The function's name in messages."""
        return _name(self.function)

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call's proposal, defaults included, as parsed from their canonical JSON.

        Raises:
            TypeError: the call does not fit the function, or an argument is not a JSON value.
            ValueError: an argument is a number or text that JSON can't carry.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            else:
                named[name] = value
        for name, value in named.items():
            check_json(value, f"{_name(self.function)}: argument {name}")
        found = parse_strict(canonical(named))
        assert isinstance(found, dict)
        return found

    def call(self, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        """The function's arguments for a run with approved ones.

        Raises:
            ApprovedArgumentsRejected: they do not fit its parameters.
        """
        parameters = self.signature.parameters
        positional = [name for name, p in parameters.items() if p.kind is inspect.Parameter.POSITIONAL_ONLY]
        try:
            missing = [name for name in positional if name not in arguments]
            if missing:
                raise TypeError(f"missing {', '.join(missing)}")
            rest = {name: value for name, value in arguments.items() if name not in positional}
            return self.signature.bind(*(arguments[name] for name in positional), **rest)
        except TypeError as error:
            raise ApprovedArgumentsRejected(
                f"the approved arguments do not fit {_name(self.function)}: {error}"
            ) from error


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
