"""Published policies, tools and principals, all versions, folded from the definitions topic."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from projections.folds.people import with_published
from projections.folds.rows import Row
from projections.folds.standing_rules import rule_id_of, standing_rule_row
from schemas.events.definitions import PolicyPublished, PolicyRetired, PrincipalPublished, ToolPublished
from schemas.events.rules import RULE_EVENTS
from schemas.headers import rfc3339
from schemas.ids import TENANT_WIDE
from schemas.principals import People
from schemas.record import Event

Name = tuple[str, str]
Place = tuple[str, str, str]  # tenant, project and name
# The maximum number of rules that can wait for the decider of the definitions.
ASKED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Retired:
    """The retirement of a policy: by whom, when and why, and its offset in the log."""

    by: str
    at_ms: int
    reason: str
    offset: int


@dataclass(frozen=True, slots=True)
class Published:
    """A version of a policy, tool or principal; `document` is canonical JSON, the project `*` for the tenant's."""

    name: str
    version: int
    document: str
    by: str
    at_ms: int
    offset: int
    tool_version: str = ""
    project: str = TENANT_WIDE
    retired: Retired | None = None


Shelf = dict[Place, list[Published]]


@dataclass(slots=True)
class LiveDefinitions:
    """The definitions by tenant, project and name, versions in order; those of a tenant have the project `*`."""

    policies: Shelf = field(default_factory=dict)
    tools: Shelf = field(default_factory=dict)
    principals: Shelf = field(default_factory=dict)
    people: People = field(default_factory=People)
    standing: dict[Name, Row] = field(default_factory=dict)
    # Standing rules whose ids were returned with a decision, and that are not yet in the definitions topic.
    asked: dict[Place, None] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Fold an event of the definitions topic; only publications, retirements and rules change anything."""
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
            self.people = with_published(
                self.people, event.meta.tenant, body.project, body.name, body.document
            )
        elif isinstance(body, PolicyRetired):
            self._apply_retirement(body, event)
            return
        else:
            return
        published = Published(
            body.name,
            body.version,
            document,
            body.by,
            event.meta.at_ms,
            event.offset,
            tool_version,
            body.project,
        )
        shelf.setdefault((event.meta.tenant, body.project, body.name), []).append(published)

    def note_asked(self, tenant: str, project: str, rule_id: str) -> None:
        """Note that a decision has requested a standing rule; the oldest such notes are dropped."""
        if (tenant, rule_id) in self.standing:
            return
        self.asked[tenant, project, rule_id] = None
        if len(self.asked) > ASKED_MAX:
            del self.asked[next(iter(self.asked))]

    def _apply_retirement(self, body: PolicyRetired, event: Event) -> None:
        meta = event.meta
        versions = self.policies.get((meta.tenant, body.project, body.name))
        if versions:
            retired = Retired(body.by, meta.at_ms, body.reason, event.offset)
            versions[-1] = replace(versions[-1], retired=retired)

    def _apply_rule(self, event: Event) -> None:
        name = (event.meta.tenant, rule_id_of(event.body))
        row = standing_rule_row(self.standing.get(name), event)
        if row is not None:
            self.standing[name] = row
            self.asked.pop((name[0], row["project"], name[1]), None)

    def tool_versions(self, tenant: str, project: str, name: str) -> list[Published]:
        """Return all versions of a tool as a project sees it, oldest first: its own, else the tenant's."""
        return seen(self.tools, tenant, project, name)

    def has_rule(self, tenant: str, project: str, name: str) -> bool:
        """Return True if a rule was ever published: a rule of a policy, or a standing one.

        Args:
            tenant: the tenant.
            project: the caller's project.
            name: `policy/rule`, `policy@version/rule`, either after `project/`; or a standing rule's id.
        """
        place, slash, rule = name.rpartition("/")
        if not slash:
            row = self.standing.get((tenant, name))
            return row is not None and row["project"] == project
        place = place.removeprefix(f"{project}/")
        policy, _, version = place.partition("@")
        versions = [
            *self.policies.get((tenant, project, policy), ()),
            *self.policies.get((tenant, TENANT_WIDE, policy), ()),
        ]
        return any(
            one.get("id") == rule
            for published in versions
            if version in ("", str(published.version))
            for one in json.loads(published.document).get("rules", ())
        )


def lies_in(shelf: Shelf, tenant: str, name: str) -> list[str]:
    """Return the projects of a tenant that have their own definition under a name."""
    return sorted(
        place for owner, place, named in shelf if (owner, named) == (tenant, name) and place != TENANT_WIDE
    )


def newest(shelf: Shelf, tenant: str, project: str) -> list[Published]:
    """Return the definitions that a project sees, its own and the tenant's, each at its newest version, by name.

    Args:
        shelf: the definitions of the kind.
        tenant: the tenant.
        project: the project that sees them; `*`: those of every project.
    """
    found = [
        versions[-1]
        for (owner, of_project, _), versions in shelf.items()
        if owner == tenant and (project == TENANT_WIDE or of_project in (TENANT_WIDE, project))
    ]
    return sorted(found, key=by_name)


def by_name(one: Published) -> tuple[str, str]:
    """Return the sort key of a definition in lists."""
    return one.name, one.project


def in_force(shelf: Shelf, tenant: str, project: str) -> list[Published]:
    """Return the same as `newest`, without retired policies."""
    return [one for one in newest(shelf, tenant, project) if one.retired is None]


def seen(shelf: Shelf, tenant: str, project: str, name: str) -> list[Published]:
    """Return all versions under a name as a project sees it, oldest first: its own, else the tenant's."""
    return list(shelf.get((tenant, project, name)) or shelf.get((tenant, TENANT_WIDE, name)) or ())


def tool_json(tool: Published) -> dict[str, Any]:
    """A tool as the API shows it: its MCP definition and the data of its publication."""
    definition = json.loads(tool.document)
    return {
        **definition,
        "name": tool.name,
        "project": tool.project,
        "version": tool.version,
        "tool_version": tool.tool_version,
        "published_by": tool.by,
        "published_at": rfc3339(tool.at_ms),
    }


def principal_json(principal: Published) -> dict[str, Any]:
    """A principal as the API shows it: its document and the data of its publication."""
    plain = {"roles": [], "agents": [], "disabled": False}
    return {
        **plain,
        **json.loads(principal.document),
        "project": principal.project,
        "version": principal.version,
        "published_by": principal.by,
        "published_at": rfc3339(principal.at_ms),
    }


def policy_json(policy: Published) -> dict[str, Any]:
    """A version of a policy as the API shows it."""
    return {
        "name": policy.name,
        "project": policy.project,
        "version": policy.version,
        "document": json.loads(policy.document),
        "published_by": policy.by,
        "published_at": rfc3339(policy.at_ms),
        "retired_by": policy.retired.by if policy.retired else None,
        "retired_at": rfc3339(policy.retired.at_ms) if policy.retired else None,
        "retired_reason": policy.retired.reason if policy.retired else None,
    }
