"""Sensitive arguments: the ones that a tool's schema marks, and the placeholders that replace them in every record.

A property with `"x-placet-sensitive": true` in its schema is marked. It is reached from the top of the inputSchema by
`properties` and `items` alone, so that every reader finds the same ones. A mark anywhere else, or a schema under it
of unbounded work, cannot be published. The log has in its place

    {"handle": "sec_…", "commitment": SHA-256(32-byte random nonce ‖ canonical JSON of the value), as hex}
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from schemas.canonical import canonical, parse_strict

MARK = "x-placet-sensitive"
HANDLE_PREFIX = "sec_"
HANDLE_CHARS = len(HANDLE_PREFIX) + 32
COMMITMENT_CHARS = 64
NONCE_BYTES = 32
# Characters of a marked schema times the values that it is applied to: a few milliseconds of work.
MAX_WORK = 1_000_000
# Instructions of RE2 times the characters that they are matched with, of all values together: some 100 ms at worst.
PATTERN_WORK_MAX = 30_000_000

# The keywords allowed under a mark: their work grows with the value and the schema and with nothing else.
BOUNDED = frozenset(
    {
        MARK,
        *("title", "description", "examples", "default", "format", "type", "enum", "const", "deprecated"),
        *("minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "minItems", "maxItems", "items", "minProperties", "maxProperties"),
        *("required", "properties", "additionalProperties"),
    }
)
PLACEHOLDER: Mapping[str, Any] = {
    "type": "object",
    "description": "A sensitive value: only its commitment is written down.",
    "properties": {
        "handle": {"type": "string", "minLength": HANDLE_CHARS, "maxLength": HANDLE_CHARS},
        "commitment": {"type": "string", "minLength": COMMITMENT_CHARS, "maxLength": COMMITMENT_CHARS},
    },
    "required": ["handle", "commitment"],
    "additionalProperties": False,
}
_HANDLE = re.compile(r"sec_[0-9a-f]{32}")
_HEX = re.compile(r"[0-9a-f]{64}")
# Types that can contain a placeholder.
_HOLDING = (dict, list)

Step = str | int
Path = tuple[Step, ...]


class Marked(NamedTuple):
    """A value to be sealed: its path, and the schema that it must fit."""

    path: Path
    value: Any
    schema: Mapping[str, Any]


def may_have_placeholder(arguments: str | None) -> bool:
    """Returns True if canonical JSON could contain a placeholder of a sealed value."""
    return arguments is not None and '"commitment":' in arguments


def has_marks(schema: Any) -> bool:
    """Returns True if anything in a schema is marked."""
    return any(True for _ in _marks(schema, reached=True))


def marking_problem(schema: Any) -> str | None:
    """Why a schema's marks cannot be honoured, or None, also for a schema without marks."""
    if not _mentions(schema):
        return None
    if isinstance(schema, Mapping) and MARK in schema:
        return f"{MARK} marks single arguments, not all of them"
    found = list(_marks(schema, reached=True))
    everywhere = sum(1 for _ in _marks(schema, reached=False))
    if any(node[MARK] is not True for node in found):
        return f"{MARK} is true or left out"
    if everywhere != len(found):
        return f"{MARK} may only be used in schemas reached by properties and items, not by $ref, anyOf and the like"
    for node in found:
        if (unbounded := _unbounded(node)) is not None:
            return f"under {MARK} the keyword {unbounded} is not allowed"
    return None


def marked_values(schema: Any, arguments: Any) -> list[Marked]:
    """The values of arguments at marked places, sealed or not, in the order of the schema."""
    return list(_values(schema, arguments, ()))


def astray(schema: Any, arguments: Any) -> Path | None:
    """The path of a value whose wrong type hides the marked values below it, or None."""
    return next(_astray(schema, arguments, ()), None)


def public_schema(schema: Any) -> Any:
    """The schema of arguments whose marked values were replaced."""
    if not isinstance(schema, Mapping):
        return schema
    if schema.get(MARK) is True:
        return dict(PLACEHOLDER)
    found = dict(schema)
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        found["properties"] = {name: public_schema(node) for name, node in properties.items()}
    if isinstance(schema.get("items"), Mapping):
        found["items"] = public_schema(schema["items"])
    return found


def replaced(arguments: Any, values: Mapping[Path, Any]) -> Any:
    """A copy of arguments with other values at some paths; the original is not changed."""
    return _replaced(arguments, values, ())


def at_path(arguments: Any, path: Path) -> Any:
    """The value at a path; None if there is none."""
    found = arguments
    for step in path:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, Mapping) else None
        else:
            found = found[step] if isinstance(found, list) and step < len(found) else None
    return found


def is_placeholder(value: Any) -> bool:
    """Returns True if a value is the placeholder of a sealed one."""
    return (
        isinstance(value, Mapping)
        and value.keys() == {"handle", "commitment"}
        and isinstance(value["handle"], str)
        and isinstance(value["commitment"], str)
        and _HANDLE.fullmatch(value["handle"]) is not None
        and _HEX.fullmatch(value["commitment"]) is not None
    )


def looks_like_placeholder(value: Any) -> bool:
    """Returns True if a value has a placeholder's fields, whatever they contain."""
    return isinstance(value, Mapping) and "handle" in value and "commitment" in value


def placeholders(value: Any) -> list[tuple[Path, str, str]]:
    """Every placeholder in a value: its path, handle and commitment."""
    found: list[tuple[Path, str, str]] = []
    if isinstance(value, _HOLDING):
        _find_placeholders(value, (), found)
    return found


def commitment_of(nonce: bytes, value: str) -> str:
    """The commitment to a value (canonical JSON): it binds to the value and reveals nothing about it."""
    return hashlib.sha256(nonce + value.encode()).hexdigest()


def pointer(path: Sequence[Step]) -> str:
    """A path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def json_path(path: Sequence[Step]) -> str:
    """A path as jsonschema writes it in its errors."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def misfit_of(marked: Marked) -> str | None:
    """Why a value does not fit the schema under its mark: `path: reason`, which never quotes the value; or None."""
    text = canonical(marked.schema)
    where = json_path(marked.path)
    if len(text) * _nodes(marked.value) > MAX_WORK:
        return f"{where}: the sensitive value is too large to be checked"
    # Imported only when there are sensitive values, so that starting processes do not wait for it.
    from schemas.json_schema import first_misfit

    try:
        error = first_misfit(text, marked.value)
    except Exception as broken:
        # The exception's text could quote the value. A value that cannot be checked does not fit.
        return f"{where}: the sensitive value cannot be checked ({type(broken).__name__})"
    if error is None:
        return None
    return f"{where}: the value does not fit its schema ({error.validator})"


def too_long_for_patterns(marked: Sequence[Marked]) -> str | None:
    """Why values are too long to be matched with their patterns: `path: reason` of the costliest; or None.

    Marks in a tool's schema have no patterns; the variables of a question can.
    """
    # Imported only when there are sensitive values, so that starting processes do not wait for it.
    from schemas.linear_patterns import linear_pattern

    work = [
        (linear_pattern(one.schema["pattern"]).programsize * len(one.value), json_path(one.path))
        for one in marked
        if "pattern" in one.schema and isinstance(one.value, str)
    ]
    if sum(cost for cost, _ in work) <= PATTERN_WORK_MAX:
        return None
    _, where = max(work)
    return f"{where}: the value is too long to be matched with its pattern"


def unsealed(schema: Any, arguments: Any) -> str | None:
    """The first marked value in arguments that is not sealed: `path: reason`, or None. The value is not quoted."""
    for marked in marked_values(schema, arguments):
        if not is_placeholder(marked.value):
            return (
                f"{json_path(marked.path)}: a sensitive argument must be sealed: propose through the gateway"
            )
    return None


def _nodes(value: Any) -> int:
    count, pending = 0, [value]
    while pending:
        one = pending.pop()
        count += 1
        if isinstance(one, Mapping):
            pending += one.values()
        elif isinstance(one, list):
            pending += one
    return count


def _mentions(schema: Any) -> bool:
    return any(True for _ in _marks(schema, reached=False))


def _marks(schema: Any, *, reached: bool) -> Iterator[Mapping[str, Any]]:
    """The marked schemas, of nested ones the outermost: those that `properties` and `items` reach, or all."""
    if isinstance(schema, list) and not reached:
        for part in schema:
            yield from _marks(part, reached=False)
    if not isinstance(schema, Mapping):
        return
    if MARK in schema:
        yield schema
        return
    for keyword, part in schema.items():
        if keyword == "properties" and isinstance(part, Mapping):
            for node in part.values():
                yield from _marks(node, reached=reached)
        elif (keyword == "items" and isinstance(part, Mapping)) or not reached:
            yield from _marks(part, reached=reached)


def _unbounded(schema: Any) -> str | None:
    if not isinstance(schema, Mapping):
        return None
    if unknown := sorted(schema.keys() - BOUNDED):
        return str(unknown[0])
    properties = schema.get("properties", {})
    parts = [schema.get("items"), schema.get("additionalProperties")]
    parts += properties.values() if isinstance(properties, Mapping) else []
    return next((found for part in parts if (found := _unbounded(part)) is not None), None)


def _values(schema: Any, value: Any, path: Path) -> Iterator[Marked]:
    if not isinstance(schema, Mapping):
        return
    if schema.get(MARK) is True:
        yield Marked(path, value, schema)
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and isinstance(value, Mapping):
        for name, node in properties.items():
            if name in value:
                yield from _values(node, value[name], (*path, name))
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            yield from _values(schema["items"], item, (*path, index))


def _astray(schema: Any, value: Any, path: Path) -> Iterator[Path]:
    if not isinstance(schema, Mapping) or schema.get(MARK) is True or not has_marks(schema):
        return
    if not _is_of_type(value, schema.get("type")):
        yield path
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and isinstance(value, Mapping):
        for name in properties.keys() & value.keys():
            yield from _astray(properties[name], value[name], (*path, name))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _astray(schema.get("items"), item, (*path, index))


def _is_of_type(value: Any, types: Any) -> bool:
    """Returns True if a value is of a type that a schema names; true for any value if the schema names none."""
    names = [types] if isinstance(types, str) else types
    if not isinstance(names, list):
        return True
    if isinstance(value, Mapping | list):
        return ("object" if isinstance(value, Mapping) else "array") in names
    return not {"string", "number", "integer", "boolean", "null"}.isdisjoint(names)


def _replaced(value: Any, values: Mapping[Path, Any], path: Path) -> Any:
    if path in values:
        return values[path]
    if isinstance(value, Mapping):
        return {name: _replaced(part, values, (*path, name)) for name, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, values, (*path, index)) for index, part in enumerate(value)]
    return value


def _find_placeholders(value: Any, path: Path, found: list[tuple[Path, str, str]]) -> None:
    # No call for each scalar and no nested generators: they are most of the cost for arguments of 100,000 values.
    if not isinstance(value, Mapping):
        for index, part in enumerate(value):
            if isinstance(part, _HOLDING):
                _find_placeholders(part, (*path, index), found)
    elif is_placeholder(value):
        found.append((path, value["handle"], value["commitment"]))
    else:
        for name, part in value.items():
            if isinstance(part, _HOLDING):
                _find_placeholders(part, (*path, name), found)


Check = Callable[[str, Any], str | None]


def public_check(schema_text: str, check: Check) -> Callable[[Any], str | None]:
    """A check for arguments whose sensitive values were replaced: first that they are sealed, then the public schema.

    Args:
        schema_text: the published inputSchema, canonical JSON.
        check: applies a schema (canonical JSON) to arguments; returns `path: reason`, or None.
    """
    schema = parse_strict(schema_text)
    if not has_marks(schema):
        return lambda arguments: check(schema_text, arguments)
    public = canonical(public_schema(schema))

    def checked(arguments: Any) -> str | None:
        if (refusal := unsealed(schema, arguments)) is not None:
            return refusal
        if (misfit := check(public, arguments)) is None:
            return None
        return _without_values(misfit)

    return checked


def public_misfits(
    schema_text: str, arguments: Any, find: Callable[[str, Any], tuple[str, ...]]
) -> tuple[str, ...]:
    """All misfits that `find` (schema, arguments) finds, of which `public_check` says the first."""
    schema = parse_strict(schema_text)
    if not has_marks(schema):
        return find(schema_text, arguments)
    if (refusal := unsealed(schema, arguments)) is not None:
        return (refusal,)
    return tuple(map(_without_values, find(canonical(public_schema(schema)), arguments)))


def _without_values(misfit: str) -> str:
    """A misfit without its message, which quotes values: a sensitive value can be at a wrong place."""
    path, colon, _ = misfit.partition(": ")
    return f"{path if colon else '$'}: this does not fit the tool's inputSchema"
