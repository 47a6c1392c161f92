"""What a published schema says of the values of a call, also behind references and alternatives.

A tenant writes the schema and an agent the call, and all tenants of a decider wait until both are read. So all that
is said of one value is one description, which is read once, and one budget limits what is looked at for a whole call:
alternatives within alternatives would multiply.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

# Schemas that are looked at for one call, each for every value that it may describe; that takes a microsecond.
MAX_LOOKED_AT = 8_192
_MADE_OF = ("anyOf", "oneOf", "allOf", "if", "then", "else")
_OF_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
_OF_MEMBERS = frozenset(("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"))
_OF_OTHERS = ("additionalProperties", "unevaluatedProperties")
# What a schema refers to by these is not looked for.
_ELSEWHERE = frozenset(("$dynamicRef", "$recursiveRef", "dependencies"))


# `True` is no number that a schema lists.
_TEXTS_AND_NUMBERS = frozenset((str, int, float))


class Vague(Exception):
    """A class would say too little of the call."""


class Descriptions:
    """The descriptions of one call's values by the schema of its tool."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._left = MAX_LOOKED_AT
        self._listed: dict[int, frozenset[Any]] = {}
        self._targets: dict[str, Any] = {}

    @property
    def looked_at(self) -> int:
        """How much of the schema was looked at so far."""
        return MAX_LOOKED_AT - self._left

    def of_call(self) -> "Described":
        """The description of the arguments."""
        return self.of([self._schema])

    def of(self, schemas: Iterable[Any]) -> "Described":
        """The description of a value by some schemas, those that they refer to, and those that they are made of.

        Raises:
            Vague: there are more than are looked at, or one that is not found: it may list what a text can be.
        """
        found: dict[int, Mapping[str, Any]] = {}
        waiting = list(self._counted(schemas))
        while waiting:
            one = waiting.pop()
            if not isinstance(one, Mapping) or id(one) in found:
                continue
            if not one.keys().isdisjoint(_ELSEWHERE):
                raise Vague
            # What several refer to is the same object.
            found[id(one)] = one
            if "$ref" in one:
                waiting += self._counted([self._referred(one["$ref"])])
            for keyword in _MADE_OF:
                if keyword in one:
                    waiting += self._counted(_some(one[keyword]))
            dependent = one.get("dependentSchemas")
            waiting += self._counted(dependent.values() if isinstance(dependent, Mapping) else ())
        return Described(self, tuple(found.values()))

    def listed(self, values: list[Any]) -> frozenset[Any]:
        """The texts and numbers among values that a schema lists."""
        known = self._listed.get(id(values))
        if known is None:
            known = self._listed[id(values)] = _texts_and_numbers(values)
        return known

    def _counted(self, schemas: Iterable[Any]) -> Iterator[Any]:
        for schema in schemas:
            self._left -= 1
            if self._left < 0:
                raise Vague
            yield schema

    def _referred(self, reference: Any) -> Any:
        """What a reference within the schema stands for (RFC 6901)."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise Vague
        if reference in self._targets:
            return self._targets[reference]
        found = self._schema
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                raise Vague
        self._targets[reference] = found
        return found


class Described:
    """What the schemas of one value say of it, of its members and of its items."""

    def __init__(self, descriptions: Descriptions, schemas: tuple[Mapping[str, Any], ...]) -> None:
        self._descriptions = descriptions
        self._schemas = schemas

    def lists(self, value: str | float) -> bool:
        """True if a schema lists a text or number as a possible one."""
        return any(value in listed for listed in self._listed)

    def member(self, name: str) -> "Described":
        """The description of an object's member.

        Raises:
            Vague: see `Descriptions.of`.
        """
        return self._descriptions.of(self._of_member(name))

    @cached_property
    def items(self) -> "Described":
        """The description of a list's items.

        Raises:
            Vague: see `Descriptions.of`.
        """
        said = [one[keyword] for one in self._schemas for keyword in _OF_ITEMS if keyword in one]
        return self._descriptions.of(schema for some in said for schema in _some(some))

    @cached_property
    def _listed(self) -> list[frozenset[Any]]:
        enums = [one["enum"] for one in self._schemas if isinstance(one.get("enum"), list)]
        constants = [one["const"] for one in self._schemas if "const" in one]
        return [*map(self._descriptions.listed, enums), _texts_and_numbers(constants)]

    @cached_property
    def _of_objects(self) -> list[Mapping[str, Any]]:
        return [one for one in self._schemas if not one.keys().isdisjoint(_OF_MEMBERS)]

    def _of_member(self, name: str) -> Iterator[Any]:
        for one in self._of_objects:
            # Also if it says nothing of this member: it was looked at.
            named = one.get("properties")
            yield named.get(name) if isinstance(named, Mapping) else None
            patterns = one.get("patternProperties")
            # Whichever pattern fits: what one lists too much only makes the class say more.
            yield from patterns.values() if isinstance(patterns, Mapping) else ()
            yield from (one[keyword] for keyword in _OF_OTHERS if keyword in one)


def _texts_and_numbers(values: Iterable[Any]) -> frozenset[Any]:
    return frozenset(one for one in values if type(one) in _TEXTS_AND_NUMBERS)


def _some(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [said]
