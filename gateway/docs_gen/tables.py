"""Markdown of a message's fields, from its model's JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from gateway.actions.verb import ClientMessage
from gateway.docs_gen.schemas import summary_of
from gateway.sockets.protocol import Answered, Received, type_of
from schemas.refusals import HTTP_STATUS, MEANINGS, Refusal

# These fields are explained once for all messages.
COMMON = frozenset({"type", "ref", "cursor"})


def message_section(model: type[BaseModel]) -> list[str]:
    """Return a heading, the purpose of the message, and its fields."""
    lines = [f"### `{type_of(model)}`", "", summary_of(model), ""]
    schema = model.model_json_schema()
    hidden = COMMON
    if issubclass(model, ClientMessage):
        hidden -= {"cursor"}
    elif issubclass(model, Received | Answered):
        hidden -= {"ref"}
    if rows := list(_rows(schema, schema.get("$defs", {}), "", hidden)):
        lines += ["| field | kind | |", "|---|---|---|", *rows, ""]
    return lines


def refusal_table(codes: Iterable[Refusal]) -> list[str]:
    """Return the refusals with their HTTP status, in their order of precedence."""
    wanted = set(codes)
    rows = [f"| `{code}` | {HTTP_STATUS[code]} |" for code in Refusal if code in wanted]
    return ["| code | status |", "|---|---|", *rows, ""]


def refusal_paragraphs() -> list[str]:
    """Return a paragraph for each refusal, in their order of precedence."""
    lines = []
    for code, meaning in MEANINGS.items():
        lines += [f"## `{code}` ({meaning.status})", "", f"{meaning.when} {meaning.remedy}", ""]
    return lines


def _rows(
    schema: dict[str, Any], defs: dict[str, Any], prefix: str, hidden: frozenset[str] = frozenset()
) -> Iterable[str]:
    required = set(schema.get("required", ()))
    for name, part in schema.get("properties", {}).items():
        if name in hidden:
            continue
        target = _resolved(part, defs)
        if name == "body" and "properties" in target:
            yield from _rows(target, defs, "body.")
            continue
        kind = kind_of(part, defs)
        said = " ".join(str(part.get("description", target.get("description", ""))).split())
        need = "" if name in required else "optional"
        yield f"| `{prefix}{name}` | {kind} | {'; '.join(filter(None, (need, _escaped(said))))} |"


def kind_of(part: dict[str, Any], defs: dict[str, Any]) -> str:
    """Describe a JSON Schema in a few words."""
    if "$ref" in part:
        target = _resolved(part, defs)
        return kind_of(target, defs) if "enum" in target else f"object ({part['$ref'].rpartition('/')[2]})"
    if "anyOf" in part:
        kinds = [kind_of(option, defs) for option in part["anyOf"]]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    if part.get("type") == "array":
        return f"list of {kind_of(part.get('items', {}), defs)}"
    if part.get("format") == "date-time":
        return "time (RFC 3339)"
    return str(part.get("type", "any JSON"))


def _resolved(part: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in part:
        found: dict[str, Any] = defs.get(part["$ref"].rpartition("/")[2], {})
        return found
    return part


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
