"""Published policies, tools and principals, by version."""

from typing import Any

from projections.folds.rows import Row, json_text, json_value, moment
from schemas.events.definitions import PolicyPublished, PolicyRetired, PrincipalPublished, ToolPublished
from schemas.message import Message
from schemas.record import Event

RETIRED = "policy-retired"
KINDS: dict[type[Message], str] = {
    PolicyPublished: "policy",
    ToolPublished: "tool",
    PrincipalPublished: "principal",
    PolicyRetired: RETIRED,
}


def definition_row(event: Event) -> Row:
    """The row of a published version, or of a policy's retirement; its project is `*` where it is the tenant's."""
    body: Any = event.body
    is_tool = isinstance(body, ToolPublished)
    return {
        "tenant": event.meta.tenant,
        "project": body.project,
        "kind": KINDS[type(body)],
        "name": body.name,
        "version": body.version,
        "tool_version": body.tool_version if is_tool else "",
        "document": _document_of(body),
        "published_by": body.by,
        "published_at_ms": event.meta.at_ms,
        "log_offset": event.offset,
        "event_id": event.meta.event_id,
        "command_id": event.meta.command_id,
    }


def _document_of(body: Any) -> str:
    if isinstance(body, PolicyRetired):
        return json_text({"reason": body.reason})
    text: str = body.definition if isinstance(body, ToolPublished) else body.document
    return text


def policy_json(row: Row) -> dict[str, Any]:
    """A version of a policy of the outward interface."""
    return {
        "name": row["name"],
        "version": row["version"],
        "document": json_value(row["document"]),
        "by": row["published_by"],
        "at": moment(row["published_at_ms"]),
    }


def tool_json(row: Row) -> dict[str, Any]:
    """A tool of the outward interface: its MCP definition with its version."""
    definition: dict[str, Any] = json_value(row["document"])
    return definition | {
        "name": row["name"],
        "version": row["version"],
        "tool_version": row["tool_version"],
        "by": row["published_by"],
        "at": moment(row["published_at_ms"]),
    }
