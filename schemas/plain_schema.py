"""JSON Schemas that a compiled validator reads as the one in Python does: whether values fit is told at once.

The validator in Python (`json_schema`) says why a value does not fit, and takes a hundred times as long. So it is
asked where the compiled one says no, or is not asked itself: of keywords that the two may read differently (patterns
have a dialect of their own here, references, `multipleOf`), and where the work could be more than little.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from schemas.canonical import parse_strict

NEWEST = "https://json-schema.org/draft/2020-12/schema"
# Characters of a schema times those of a value; each keyword meets each part of the value once at most.
MAX_WORK = 1_000_000

# What only describes, or is read the same by both; a name of an extension (x-…) describes.
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
    """A schema that both read alike: how long its text is, and what tells whether a value fits."""

    chars: int
    fits: Callable[[Any], bool]


@lru_cache(maxsize=1024)
def compiled(schema_text: str) -> Compiled | None:
    """A schema (JSON) compiled; None where the two validators may differ, or it is no schema."""
    # Loaded with the first schema: a decider that starts claims its partitions sooner without it.
    import jsonschema_rs

    schema = parse_strict(schema_text)
    if not all(map(_is_plain, _parts(schema))) or not jsonschema_rs.meta.is_valid(schema):
        return None
    return Compiled(
        len(schema_text), jsonschema_rs.Draft202012Validator(schema, validate_formats=False).is_valid
    )


def surely_fits(schema_text: str, value: Any) -> bool:
    """Whether a value is known with little work to fit a schema (JSON); where it is not, ask `json_schema`."""
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
