"""The published definitions."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, Offer, TableOf
from projections.tables.common import (
    CommandId,
    Document,
    EventId,
    LogOffset,
    Name,
    PublishedAt,
    PublishedBy,
    Tenant,
    ToolVersion,
    Version,
)


class DefinitionRow(TypedDict):
    """Every published version of a policy, tool or principal."""

    tenant: Tenant
    project: Annotated[str, "The project; * for the whole tenant."]
    kind: Annotated[str, "policy, tool, principal or policy-retired."]
    name: Name
    version: Version
    tool_version: ToolVersion
    document: Document
    published_by: PublishedBy
    published_at_ms: PublishedAt
    log_offset: LogOffset
    event_id: EventId
    command_id: CommandId


DEFINITIONS = TableOf(
    "definitions",
    DefinitionRow,
    key=("tenant", "project", "kind", "name", "version"),
    indices=(Index("definitions_by_time", ("tenant", "project", "published_at_ms")),),
    time="published_at_ms",
)


class ToolRow(TypedDict):
    """The newest version of each tool, for each project and for the whole tenant; made from definitions."""

    tenant: Tenant
    name: Name
    version: Version
    tool_version: ToolVersion
    definition: Annotated[Json, "JSON of the tool's definition."]
    published_by: PublishedBy
    published_at_ms: PublishedAt
    project: Annotated[str, "The project; * for the whole tenant."]


TOOLS = Offer("tools", ToolRow)


class PolicyRow(TypedDict):
    """All versions of all policies; made from definitions."""

    tenant: Tenant
    name: Name
    version: Version
    document: Document
    published_by: PublishedBy
    published_at_ms: PublishedAt
    project: Annotated[str, "The project; * for the whole tenant."]


POLICIES = Offer("policies", PolicyRow)
