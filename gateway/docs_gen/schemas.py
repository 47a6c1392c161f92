"""JSON Schemas of models, in the form that the published documents contain."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

Schemas = dict[str, Any]


def schemas_of(model: type[BaseModel], name: str, prefix: str = "", *, name_lists: bool = False) -> Schemas:
    """Return the JSON Schemas of a model, under a name, and of the models it refers to, with a prefix to their names.

    Generators name their types after titles: the title of each schema is its name, and a field has none, because a
    field of another model could have the same. With `name_lists`, a field that lists its values is named after its
    schema and itself: some generators have no other name for its type, and others build this name themselves.
    """
    schema = model.model_json_schema(ref_template=f"#/components/schemas/{prefix}{{model}}")
    parts: Schemas = schema.pop("$defs", {})
    found = {**{prefix + part: value for part, value in parts.items()}, name: schema}
    for title, one in found.items():
        _retitle(one, title if name_lists else "")
        one["title"] = title
    return found


def add(schemas: Schemas, more: Schemas) -> None:
    """Add schemas to others.

    Raises:
        ValueError: two different schemas have one name.
    """
    for name, schema in more.items():
        if schemas.setdefault(name, schema) != schema:
            raise ValueError(f"two schemas have the name {name}")


def summary_of(model: type[BaseModel]) -> str:
    """Return the first paragraph of a model's docstring, on one line."""
    return " ".join((model.__doc__ or "").strip().split("\n\n")[0].split())


def _retitle(schema: Any, title: str) -> None:
    for name, part in schema.get("properties", {}).items():
        _retitle_part(part, title and title + "".join(word.capitalize() for word in name.split("_")))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _retitle_part(schema[key], title)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for part in schema.get(key, ()):
            _retitle_part(part, title)


def _retitle_part(part: Any, title: str) -> None:
    part.pop("title", None)
    # An object that is defined in place has no other name either, also if that is what something else must be.
    if title and ("enum" in part or "properties" in {**part, **part.get("else", {})}):
        part["title"] = title
    _retitle(part, title)
