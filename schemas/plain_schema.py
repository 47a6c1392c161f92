"""JSON Schemas for which a fast compiled validator gives the same answer as the validator in Python.

The validator in Python (`json_schema`) also says why a value does not fit, and takes a hundred times as long. It is
used if the compiled one finds a misfit, or cannot be used: for keywords that the two may read differently (patterns,
which have a dialect of their own here, references, `multipleOf`), and if the work could be large.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from schemas.canonical import parse_strict

NEWEST = "https://json-schema.org/draft/2020-12/schema"
# Characters of a schema times those of a value; each keyword is applied to each part of the value at most once.
MAX_WORK = 1_000_000

# Keywords that only describe; extensions (x-…) also only describe.
_DESCRIBING = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "format",
    }
)
_OF_VALUES = frozenset(
    {
        *("type", "enum", "const", "required", "dependentRequired"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    }
)
_SCHEMA = frozenset({"items", "additionalProperties", "propertyNames", "not", "if", "then", "else"})
_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS_BY_NAME = frozenset({"properties", "dependentSchemas"})


class Compiled(NamedTuple):
    """A schema that both read alike: the length of its text, and a test of values."""

    chars: int
    fits: Callable[[Any], bool]


@lru_cache(maxsize=1024)
def compiled(schema_text: str) -> Compiled | None:
    """A compiled schema (JSON); None if the two validators may differ, or if it is not a schema."""
    # Imported with the first schema, so that a starting decider claims its partitions sooner.
    import jsonschema_rs

    schema = parse_strict(schema_text)
    if not all(map(_is_plain, _parts(schema))) or not jsonschema_rs.meta.is_valid(schema):
        return None
    return Compiled(
        len(schema_text), jsonschema_rs.Draft202012Validator(schema, validate_formats=False).is_valid
    )


def surely_fits(schema_text: str, value: Any) -> bool:
    """Returns True if a value surely fits a schema (JSON), found with little work; if false, use `json_schema`."""
    schema = compiled(schema_text)
    return schema is not None and schema.chars * len(repr(value)) <= MAX_WORK and schema.fits(value)


def _is_plain(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return isinstance(part, bool)
    return all(_is_plain_word(word) for word in part) and part.get("$schema", NEWEST) == NEWEST


def _is_plain_word(word: str) -> bool:
    return (
        word in _OF_VALUES
        or word in _SCHEMA
        or word in _SCHEMAS
        or word in _SCHEMAS_BY_NAME
        or word in _DESCRIBING
        or word == "$schema"
        or word.startswith("x-")
    )


def _parts(schema: Any) -> Iterator[Any]:
    """A schema and every schema in it."""
    pending = [schema]
    while pending:
        part = pending.pop()
        yield part
        for word, what in part.items() if isinstance(part, Mapping) else ():
            if word in _SCHEMA:
                pending.append(what)
            elif word in _SCHEMAS and isinstance(what, list):
                pending += what
            elif word in _SCHEMAS_BY_NAME and isinstance(what, Mapping):
                pending += what.values()
