"""A tool's inputSchema: read at publishing, and applied to the arguments of calls with limited work.

An operator writes the schema and an agent the arguments, and together they determine how long the check takes: a
pattern may backtrack for ever, references may multiply. So only work that is certainly small is done here. The rest
is left to a process that can be killed (`services.runtime.cel_helper`), and arguments that were not checked do not
fit. No reference is ever fetched.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from schemas.canonical import parse_strict
from schemas.plain_schema import surely_fits

# The limit of work done in this process. A unit is one keyword at one value, or 256 characters that an error would
# repeat (1 to 10 µs).
MAX_COST = 2_000
CHARACTERS_A_UNIT = 256
MISFIT_MAX_CHARS = 500
# As many as are named of one call; arguments can have thousands.
MISFITS_MAX = 20
# The schema of a tool without `inputSchema`; arguments are always objects.
ANY_OBJECT = '{"type":"object"}'

# Returns why arguments (a parsed value) do not fit a schema (canonical JSON) of a tenant: `path: reason`, or None.
SchemaCheck = Callable[[str, Any, str], str | None]

# Keywords whose work is not limited by the size of the values that they apply to.
_UNBOUNDED = frozenset(
    {
        "pattern",
        "patternProperties",
        "uniqueItems",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
        "$id",
        "id",
    }
)
# In this draft, keywords contain schemas that are plain values in every later draft.
OLDEST_DRAFT = "draft-03"
# Keywords that apply schemas to the value itself, and to its parts.
_BY_NAME = frozenset({"dependentSchemas", "dependencies"})
_TO_ITSELF = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"}) | _BY_NAME
_TO_PARTS = frozenset(
    {"items", "prefixItems", "additionalItems", "contains", "additionalProperties", "propertyNames"}
)


class NotNow(Exception):
    """The schema cannot be applied at this moment, but can be a little later: the arguments may well fit."""


def misfit_in_place(schema_text: str, arguments: Any, tenant: str = "") -> str | None:
    """The reason why arguments do not fit a schema, checked here if that is certainly little work for any tenant."""
    if surely_fits(schema_text, arguments):
        return None
    if cost_of(schema_text, arguments) <= MAX_COST:
        return misfit(schema_text, arguments)
    return unchecked("it is too much work without a helper process")


def unchecked(why: str) -> str:
    """The reason for arguments that could not be checked: they do not fit."""
    return f"$: the tool's inputSchema could not be applied: {why}"


def misfit(schema_text: str, arguments: Any) -> str | None:
    """The reason why arguments do not fit a schema, with unlimited work: for killable processes, or known small work.

    Returns:
        `JSON path: reason` of the worst misfit, or None.
    """
    # Imported only when a schema is applied, so that a decider starts faster.
    from schemas.json_schema import first_misfit

    try:
        error = first_misfit(schema_text, arguments)
    except Exception as broken:
        # A dangling or endless reference, or any other error that a schema can cause: no arguments fit it.
        return unchecked(type(broken).__name__)
    return None if error is None else _said(error)


def misfits(schema_text: str, arguments: Any) -> tuple[str, ...]:
    """The first misfits of arguments with a schema, that of `misfit` before the others, with unlimited work."""
    from schemas.json_schema import some_misfits

    first = misfit(schema_text, arguments)
    if first is None:
        return ()
    try:
        found = some_misfits(schema_text, arguments, MISFITS_MAX)
    except Exception:
        # `misfit` has said so already.
        return (first,)
    return tuple(dict.fromkeys((first, *map(_said, found))))[:MISFITS_MAX]


def _said(error: Any) -> str:
    return f"{error.json_path}: {error.message}"[:MISFIT_MAX_CHARS]


def cost_of(schema_text: str, arguments: Any) -> float:
    """An upper bound of the units of work to apply the schema to the arguments, exact as long as it is small.

    Returns:
        A number above `MAX_COST` if the work is large; infinity if it has no bound.
    """
    if schema_text == ANY_OBJECT:
        return 0
    root = _parsed(schema_text)
    repeated = len(repr(arguments)) / CHARACTERS_A_UNIT
    cost = 0.0
    pending = [(root, arguments)]
    while pending and cost <= MAX_COST:
        schema, value = pending.pop()
        if not isinstance(schema, Mapping):
            cost += 1
            continue
        if not _UNBOUNDED.isdisjoint(schema) or OLDEST_DRAFT in str(schema.get("$schema", "")):
            return math.inf
        cost += 1 + repeated
        for keyword, what in schema.items():
            found = _applied(root, keyword, what, value)
            if found is None:
                return math.inf
            cost += 1 + len(found) + (len(what) if isinstance(what, list | dict) else 0)
            pending += found
    return cost


def _applied(root: Any, keyword: str, what: Any, value: Any) -> list[tuple[Any, Any]] | None:
    """The schemas that a keyword applies, each with its value; None if they are too many or elsewhere."""
    if keyword == "$ref":
        target = _target(root, what)
        return None if target is None else [(target, value)]
    if keyword == "properties" and isinstance(what, Mapping):
        return (
            [(what[name], value[name]) for name in what if name in value]
            if isinstance(value, Mapping)
            else []
        )
    if keyword in _TO_ITSELF:
        return [(schema, value) for schema in _schemas(keyword, what)]
    if keyword in _TO_PARTS and isinstance(value, Mapping | list):
        schemas = _schemas(keyword, what)
        parts = value if isinstance(value, list) else [*value, *value.values()]
        few = len(schemas) * len(parts) <= MAX_COST
        return [(schema, part) for schema in schemas for part in parts] if few else None
    return []


def _schemas(keyword: str, what: Any) -> list[Any]:
    if keyword in _BY_NAME and isinstance(what, Mapping):
        return list(what.values())
    return what if isinstance(what, list) else [what]


@lru_cache(maxsize=1024)
def _parsed(schema_text: str) -> Any:
    return parse_strict(schema_text)


def _target(root: Any, reference: Any) -> Any:
    """The target of a reference by a plain JSON pointer; None for others, which jsonschema may resolve differently.

    A name (`#name`) is an anchor somewhere, `%` an encoding, and in a part with its own id the target differs.
    """
    if not isinstance(reference, str) or "%" in reference or not f"{reference}/".startswith("#/"):
        return None
    found = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping) and any(isinstance(found.get(own), str) for own in ("$id", "id")):
            return None
    return found
