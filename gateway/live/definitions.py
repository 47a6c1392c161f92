"""Published policies, tools and principals, all versions, folded from the definitions topic."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any

from projections.folds.rows import Row
from projections.folds.standing_rules import rule_id_of, standing_rule_row
from schemas.events.definitions import PolicyPublished, PrincipalPublished, ToolPublished
from schemas.events.rules import RULE_EVENTS
from schemas.headers import rfc3339
from schemas.policy_problems import PolicyRefused
from schemas.principals import People, principal_from_value
from schemas.record import Event

logger = logging.getLogger(__name__)

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Published:
    """One version of a policy, tool or principal; `document` is canonical JSON."""

    name: str
    version: int
    document: str
    by: str
    at_ms: int
    offset: int
    tool_version: str = ""


@dataclass(slots=True)
class Definitions:
    """By tenant and name, versions in order."""

    policies: dict[Name, list[Published]] = field(default_factory=dict)
    tools: dict[Name, list[Published]] = field(default_factory=dict)
    principals: dict[Name, list[Published]] = field(default_factory=dict)
    people: People = field(default_factory=People)
    standing: dict[Name, Row] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Fold an event of the definitions topic; others than publications change nothing."""
        body = event.body
        if isinstance(body, RULE_EVENTS):
            self._apply_rule(event)
            return
        if isinstance(body, PolicyPublished):
            shelf, document, tool_version = self.policies, body.document, ""
        elif isinstance(body, ToolPublished):
            shelf, document, tool_version = self.tools, body.definition, body.tool_version
        elif isinstance(body, PrincipalPublished):
            shelf, document, tool_version = self.principals, body.document, ""
            self._apply_principal(body, event.meta.tenant)
        else:
            return
        published = Published(
            body.name, body.version, document, body.by, event.meta.at_ms, event.offset, tool_version
        )
        shelf.setdefault((event.meta.tenant, body.name), []).append(published)

    def _apply_principal(self, body: PrincipalPublished, tenant: str) -> None:
        try:
            self.people = self.people.with_principal(tenant, principal_from_value(json.loads(body.document)))
        except PolicyRefused as error:
            # As in the decider: of a later version, and not to be guessed.
            logger.error("the principal %s of %s may do nothing: %s", body.name, tenant, error)
            self.people = self.people.without_roles(tenant, body.name)

    def _apply_rule(self, event: Event) -> None:
        name = (event.meta.tenant, rule_id_of(event.body))
        row = standing_rule_row(self.standing.get(name), event)
        if row is not None:
            self.standing[name] = row

    def newest_tools(self, tenant: str) -> list[Published]:
        """Each tool of a tenant at its newest version, by name."""
        found = [versions[-1] for (owner, _), versions in self.tools.items() if owner == tenant]
        return sorted(found, key=lambda tool: tool.name)

    def newest_policies(self, tenant: str) -> list[Published]:
        """Each policy of a tenant at its newest version, by name."""
        found = [versions[-1] for (owner, _), versions in self.policies.items() if owner == tenant]
        return sorted(found, key=lambda policy: policy.name)

    def newest_principals(self, tenant: str) -> list[Published]:
        """Each principal of a tenant at its newest version, by name."""
        found = [versions[-1] for (owner, _), versions in self.principals.items() if owner == tenant]
        return sorted(found, key=lambda principal: principal.name)

    def policy_versions(self, tenant: str, name: str) -> list[Published]:
        """All versions of a policy, oldest first."""
        return list(self.policies.get((tenant, name), ()))

    def tool_versions(self, tenant: str, name: str) -> list[Published]:
        """All versions of a tool, oldest first."""
        return list(self.tools.get((tenant, name), ()))


def tool_json(tool: Published) -> dict[str, Any]:
    """A tool as it is served: its MCP definition and what was published."""
    definition = json.loads(tool.document)
    return {
        **definition,
        "name": tool.name,
        "version": tool.version,
        "tool_version": tool.tool_version,
        "published_by": tool.by,
        "published_at": rfc3339(tool.at_ms),
    }


def principal_json(principal: Published) -> dict[str, Any]:
    """A principal as it is served: what it is, and what was published."""
    plain = {"roles": [], "agents": [], "disabled": False}
    return {
        **plain,
        **json.loads(principal.document),
        "version": principal.version,
        "published_by": principal.by,
        "published_at": rfc3339(principal.at_ms),
    }


def policy_json(policy: Published) -> dict[str, Any]:
    """A version of a policy as it is served."""
    return {
        "name": policy.name,
        "version": policy.version,
        "document": json.loads(policy.document),
        "published_by": policy.by,
        "published_at": rfc3339(policy.at_ms),
    }
