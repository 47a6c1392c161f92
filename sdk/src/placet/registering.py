"""The tool definition of a gated function, derived from its signature, and published if requested.

An operator owns definitions: they determine which arguments are valid, and their annotations can make a call allowed.
So an agent's own token cannot publish one (docs/decisions/0029-registering-tools.md).
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placet import asks
from placet.bodies import CannotBeGated
from placet.canonical import MalformedJson, canonical, check_json, sha256_hex
from placet.errors import NotAuthorised, NotFound
from placet.models import Published
from placet.secrets import MARK
from placet.tool_models import Tool

if TYPE_CHECKING:
    from placet.binding import Binding
    from placet.channel import Channel
    from placet.gated_options import Options

DECLARED = "__placet_tool__"
PLAIN: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    tuple: "array",
    dict: "object",
}
ARRAYS = (list, tuple, collections.abc.Sequence)
OBJECTS = (dict, collections.abc.Mapping)


@dataclass(frozen=True)
class Registered:
    """A tool as it is published now; `is_new` if that needed a new version."""

    name: str
    version: Any
    is_new: bool


def declare(wrapped: Any, binding: Binding, options: Options) -> None:
    """Attach to a gated function the definition that it would be published with.

    Raises:
        CannotBeGated: `register` was requested, and its parameters have types that JSON Schema cannot express.
    """
    if options.register:
        definition_of(binding, options)
    setattr(wrapped, DECLARED, (binding, options))


def declared(function: Callable[..., Any]) -> tuple[Binding, Options]:
    """The declared definition of a gated function.

    Raises:
        TypeError: it is not gated.
    """
    found: tuple[Binding, Options] | None = getattr(function, DECLARED, None)
    if found is None:
        raise TypeError(f"{getattr(function, '__qualname__', function)!r} is not gated: decorate it first")
    return found


def definition_of(binding: Binding, options: Options) -> dict[str, Any]:
    """The MCP definition of a gated function, with Placet's own fields."""
    function = binding.function
    schema = options.input_schema if options.input_schema is not None else _input_schema(binding, options)
    found: dict[str, Any] = {"name": options.tool or function.__name__, "inputSchema": dict(schema)}
    if said := inspect.getdoc(function):
        found["description"] = said.split("\n\n")[0].replace("\n", " ")
    if options.annotations:
        found["annotations"] = dict(options.annotations)
    if options.idempotent:
        found["idempotent"] = True
    return found


async def register(channel: Channel, definition: Mapping[str, Any]) -> Registered:
    """Publish a definition, unless it is already published.

    Raises:
        NotAuthorised: it differs from the published one, and this token may not publish.
    """
    name = str(definition["name"])
    found = await _published(channel, name)
    if found is not None and found.raw.get("tool_version") == sha256_hex(canonical(dict(definition))):
        return Registered(name, found.version, is_new=False)
    try:
        published = await channel.one(Published, asks.put_tool(name, definition))
    except NotAuthorised as refused:
        detail = (
            f"{name} is not published as this program declares it, and {refused.detail or 'this token may not'}:"
            " an operator must publish it, with `placet tool register` or `placet tool put`"
        )
        raise NotAuthorised(refused.code, refused.status, detail, refused.fields) from refused
    return Registered(name, published.version, is_new=True)


async def _published(channel: Channel, name: str) -> Tool | None:
    try:
        return await channel.one(Tool, asks.get_tool(name))
    except NotFound:
        return None


async def register_once(channel: Channel, binding: Binding, options: Options) -> None:
    """Register a function's definition the first time that a client runs it."""
    definition = definition_of(binding, options)
    version = sha256_hex(canonical(definition))
    if version not in channel.registered:
        await register(channel, definition)
        channel.registered.add(version)


def _input_schema(binding: Binding, options: Options) -> dict[str, Any]:
    function = binding.function
    name = getattr(function, "__qualname__", repr(function))
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise CannotBeGated(f"{name}: {error}; give input_schema") from error
    properties: dict[str, Any] = {}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required, is_open = [], False
    for parameter in binding.signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            is_open = True
            continue
        found = schema_of(hints.get(parameter.name, Any), f"{name}: {parameter.name}")
        if parameter.name in options.sensitive:
            found[MARK] = True
        elif parameter.default is not inspect.Parameter.empty:
            found |= _default(parameter.default)
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        properties[parameter.name] = found
    if required:
        schema["required"] = required
    if not is_open:
        schema["additionalProperties"] = False
    return schema


def schema_of(hint: Any, where: str) -> dict[str, Any]:
    """The JSON Schema of a type.

    Raises:
        CannotBeGated: JSON Schema cannot express it.
    """
    if hint is Any or hint is object:
        return {}
    if hint in PLAIN:
        return {"type": PLAIN[hint]}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        said = [text for text in inner[1:] if isinstance(text, str)]
        return schema_of(inner[0], where) | ({"description": said[0]} if said else {})
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(one, where) for one in inner]}
    if origin in ARRAYS:
        is_many = origin is not tuple or (len(inner) == 2 and inner[1] is Ellipsis)
        if is_many:
            return {"type": "array", "items": schema_of(inner[0], where)}
    if origin in OBJECTS and inner[0] is str:
        return {"type": "object", "additionalProperties": schema_of(inner[1], where)}
    raise CannotBeGated(f"{where}: {hint!r} has no JSON Schema here; give input_schema")


def _default(value: Any) -> dict[str, Any]:
    """A default, if it is JSON; otherwise the call of the function reports the error."""
    try:
        check_json(value, "default")
    except (TypeError, ValueError, MalformedJson):
        return {}
    return {"default": value}
