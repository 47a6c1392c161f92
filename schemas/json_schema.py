"""Foreign JSON Schemas: checked in bounded time, and applied with patterns of linear time.

No reference is ever fetched. A compiled validator checks a schema against its draft's meta-schema, since a validator
in Python takes many seconds for a schema of 64 KiB.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import jsonschema
import jsonschema_rs
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry, Resource
from referencing.exceptions import NoSuchAnchor, Unresolvable
from referencing.jsonschema import DRAFT202012

from schemas.canonical import canonical, parse_strict
from schemas.limits import INPUT_SCHEMA_MAX_BYTES
from schemas.linear_patterns import PatternRefused, linear_pattern
from schemas.plain_schema import NEWEST

_OLD = "http://json-schema.org/draft-0"
# The drafts against which schemas are checked; a schema that names another draft, or none, is checked by the newest.
_DRAFTS = frozenset(
    {
        NEWEST,
        "https://json-schema.org/draft/2019-09/schema",
        *(f"{_OLD}{number}/schema" for number in (4, 6, 7)),
    }
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# The maximal size of all patterns of one schema together, in RE2's instructions.
PROGRAMS_MAX = 100_000
MESSAGE_MAX_CHARS = 500


class SchemaProblem(NamedTuple):
    """Why a schema cannot be published: the place (`.properties.a`), and what to correct."""

    path: str
    message: str


def schema_problem(schema: Mapping[str, Any]) -> SchemaProblem | None:
    """Why a schema cannot be published, or None."""
    named = schema.get("$schema", NEWEST)
    if not isinstance(named, str):
        return SchemaProblem(".$schema", "must be a string")
    if named.rstrip("#") == f"{_OLD}3/schema":
        return SchemaProblem(".$schema", "draft-03 is no longer supported; write the schema in a later draft")
    if len(canonical(schema).encode()) > INPUT_SCHEMA_MAX_BYTES:
        return SchemaProblem("", f"is limited to {INPUT_SCHEMA_MAX_BYTES} bytes")
    return (
        _misformed(schema, named.rstrip("#"))
        or _no_object(schema)
        or _nested_dialect(schema)
        or _bad_pattern(schema)
        or _leads_nowhere(schema)
    )


@lru_cache(maxsize=1024)
def validator_of(schema_text: str) -> Validator:
    """The validator of a schema (JSON). It fails on references to elsewhere and on refused patterns when applied."""
    schema = parse_strict(schema_text)
    if (nested := _nested_dialect(schema)) is not None:
        raise PatternRefused(nested.message)
    drafts = validator_for(schema, default=jsonschema.Draft202012Validator)
    # The default registry would fetch unknown references over the network.
    applied: Validator = _linear(drafts)(schema, registry=Registry())
    return applied


def first_misfit(schema_text: str, value: Any) -> jsonschema.ValidationError | None:
    """The most relevant misfit of a value with a schema (JSON), or None. If it raises, no value fits the schema."""
    error: jsonschema.ValidationError | None = jsonschema.exceptions.best_match(
        validator_of(schema_text).iter_errors(value)
    )
    return error


def some_misfits(schema_text: str, value: Any, most: int) -> list[jsonschema.ValidationError]:
    """The first misfits of a value with a schema (JSON), each by its most relevant part; raises as `first_misfit`."""
    found = islice(validator_of(schema_text).iter_errors(value), most)
    return [jsonschema.exceptions.best_match([error]) for error in found]


@lru_cache
def _linear(draft: Any) -> Any:
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    return extend(draft, validators=keywords)  # type: ignore[no-untyped-call]


def _misformed(schema: Mapping[str, Any], draft: str) -> SchemaProblem | None:
    # The meta-schema of any other draft would be fetched.
    compared = {**schema, "$schema": draft if draft in _DRAFTS else NEWEST}
    try:
        jsonschema_rs.meta.validate(compared)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        steps = getattr(error, "instance_path", ())
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        message = getattr(error, "message", str(error))
        return SchemaProblem(path, f"is not JSON Schema: {message}"[:MESSAGE_MAX_CHARS])
    return None


def _no_object(schema: Mapping[str, Any]) -> SchemaProblem | None:
    kinds = schema.get("type", "object")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        return None
    return SchemaProblem(".type", 'must be "object": arguments are always an object, so no call would match')


def _leads_nowhere(schema: Mapping[str, Any]) -> SchemaProblem | None:
    """The problem of a reference to something outside the schema: nothing is fetched, so no call would fit."""
    if not any(word in part for _, part in _parts(schema) for word in _REFERENCES):
        return None
    whole = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry = Registry().with_resource(whole.id() or "", whole).crawl()
    pending = [(whole, registry.resolver_with_root(whole))]
    while pending:
        part, resolver = pending.pop()
        resolver = resolver.in_subresource(part)
        contents = part.contents
        for word in _REFERENCES:
            found = contents.get(word) if isinstance(contents, Mapping) else None
            if not isinstance(found, str):
                continue
            try:
                resolver.lookup(found)
            except (Unresolvable, NoSuchAnchor, ValueError, TypeError):
                named = json.dumps(found[:80], ensure_ascii=False)
                message = (
                    f"refers to {named}, which is not in the schema, and nothing is fetched:"
                    ' put that schema under "$defs" and refer to it by "#/$defs/NAME"'
                )
                return SchemaProblem("", message)
        pending += [(inner, resolver) for inner in part.subresources()]
    return None


def _parts(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object in a value, with its path."""
    if isinstance(value, Mapping):
        yield path, value
        for name, part in value.items():
            yield from _parts(part, f"{path}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _parts(part, f"{path}[{index}]")


def _nested_dialect(schema: Any) -> SchemaProblem | None:
    # The validator would apply a part in another dialect with that dialect's own rules for patterns.
    for path, part in _parts(schema):
        if path and isinstance(part.get("$schema"), str):
            return SchemaProblem(f"{path}.$schema", "is allowed only at the top of the whole schema")
    return None


def _bad_pattern(schema: Any) -> SchemaProblem | None:
    size = 0
    for path, part in _parts(schema):
        by_name = part.get("patternProperties")
        if "unevaluatedProperties" in part and any("patternProperties" in inner for _, inner in _parts(part)):
            message = (
                "is not supported beside patternProperties; name the properties, or use additionalProperties"
            )
            return SchemaProblem(f"{path}.unevaluatedProperties", message)
        found = [(f"{path}.pattern", part.get("pattern"))]
        found += (
            [(f"{path}.patternProperties", name) for name in by_name] if isinstance(by_name, Mapping) else []
        )
        for where, pattern in found:
            if not isinstance(pattern, str):
                continue
            try:
                size += linear_pattern(pattern).programsize
            except PatternRefused as error:
                return SchemaProblem(where, f"cannot be used: {error}")
            if size > PROGRAMS_MAX:
                return SchemaProblem(where, "and the patterns before it are too large together")
    return None


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    if validator.is_type(value, "string") and not linear_pattern(pattern).search(value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, schema: Any
) -> Iterator[jsonschema.ValidationError]:
    if not validator.is_type(value, "object"):
        return
    for pattern, inner in patterns.items():
        compiled = linear_pattern(pattern)
        for name, part in value.items():
            if compiled.search(name):
                yield from validator.descend(part, inner, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    if not validator.is_type(value, "object"):
        return
    patterns = [linear_pattern(pattern) for pattern in schema.get("patternProperties", {})]
    named = schema.get("properties", {})
    extras = [name for name in value if name not in named and not any(one.search(name) for one in patterns)]
    if validator.is_type(allowed, "object"):
        for extra in extras:
            yield from validator.descend(value[extra], allowed, path=extra)
    elif not allowed and extras:
        shown = ", ".join(map(repr, sorted(extras)))
        verb = "was" if len(extras) == 1 else "were"
        if patterns:
            yield jsonschema.ValidationError(f"{shown} {verb} matched by no pattern of patternProperties")
        else:
            yield jsonschema.ValidationError(
                f"Additional properties are not allowed ({shown} {verb} unexpected)"
            )
