"""What was published when, read from the definitions topic: which tool stood behind a name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ops.checker.facts import Fact
from ops.checker.people import TENANTS, PeopleSeen
from ops.checker.policies import PoliciesSeen
from ops.checker.rules import RulesSeen


@dataclass(frozen=True, slots=True)
class Tool:
    """One published version of a tool. `offset` is where it stands on the definitions topic."""

    offset: int
    version: str
    idempotent: bool


UNKNOWN = Tool(-1, "", False)


@dataclass(slots=True)
class Published:
    """All versions of all tools, policies and principals, and the ids of the definitions' records by offset."""

    record_ids: dict[int, str] = field(default_factory=dict)
    people: PeopleSeen = field(default_factory=PeopleSeen)
    rules: RulesSeen = field(default_factory=RulesSeen)
    policies: PoliciesSeen = field(default_factory=PoliciesSeen)
    _tools: dict[tuple[str, str, str], list[Tool]] = field(default_factory=dict)

    def tool(self, tenant: str, project: str, name: str, through_offset: int) -> Tool:
        """The tool as a project sees it by the definitions up to an offset; `UNKNOWN` if nobody published it."""
        for place in (project, TENANTS):
            found = [t for t in self._tools.get((tenant, place, name), ()) if t.offset <= through_offset]
            if found:
                return found[-1]
        return UNKNOWN

    def read(self, fact: Fact) -> None:
        """Take the next counting fact of the definitions topic."""
        self.record_ids[fact.offset] = fact.event_id
        place = self.rules.project_of(fact)
        self.rules.published(fact, self.people.at(fact.tenant, place, fact.offset))
        if fact.type == "ToolPublished":
            idempotent = json.loads(fact.body.definition).get("idempotent") is True
            tool = Tool(fact.offset, fact.body.tool_version, idempotent)
            self._tools.setdefault((fact.tenant, fact.body.project, fact.body.name), []).append(tool)
        elif fact.type == "PrincipalPublished":
            self.people.read(fact)
        elif fact.type in ("PolicyPublished", "PolicyRetired"):
            self.policies.read(fact)
