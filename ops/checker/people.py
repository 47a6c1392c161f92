"""The checker's own reading of published principals: who an account is, and which roles it had when.

Written apart from `schemas.principals` on purpose: a mistake there must not be repeated here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ops.checker.facts import Fact

TENANTS = "*"
Documents = dict[str, dict[str, Any]]


@dataclass(slots=True)
class PeopleSeen:
    """All versions of all principals, as the definitions topic has them."""

    _versions: list[tuple[int, str, str, dict[str, Any]]] = field(default_factory=list)

    def read(self, fact: Fact) -> None:
        """Take a PrincipalPublished."""
        body = fact.body
        self._versions.append((fact.offset, fact.tenant, body.project, json.loads(body.document)))

    def at(self, tenant: str, project: str, through_offset: int) -> PeopleAt:
        """The principals of a tenant, as a project of it has them by the definitions up to an offset."""
        newest: dict[str, Documents] = {TENANTS: {}, project: {}}
        for offset, owner, place, document in self._versions:
            if owner == tenant and place in newest and offset <= through_offset:
                newest[place][document["principal"]] = document
        return PeopleAt(newest[TENANTS], newest[project] if project != TENANTS else {}, project)


@dataclass(frozen=True, slots=True)
class PeopleAt:
    """A tenant's principals at one moment, by name; and those of one of its projects, which add to them."""

    principals: Documents
    local: Documents = field(default_factory=dict)
    project: str = TENANTS

    def of_account(self, subject: str) -> dict[str, Any] | None:
        """The principal whose account a subject is: the tenant's before the project's."""
        found = _holder(self.principals, subject)
        if found is None:
            alone = _holder(self.local, subject)
            if alone is None or alone["principal"] not in self.principals:
                return alone
            return {"principal": f"{self.project}/{alone['principal']}", "disabled": True}
        added = self.local.get(found["principal"], {})
        both = [*found.get("roles", ()), *added.get("roles", ())]
        disabled = bool(found.get("disabled") or added.get("disabled"))
        return {"principal": found["principal"], "roles": both, "disabled": disabled}

    def person(self, subject: str) -> str:
        """Who a subject is; one that only bears a principal's name is somebody else."""
        found = self.of_account(subject)
        if found is not None:
            return str(found["principal"])
        return f"account {subject}" if self._is_name(subject) else subject

    def meant(self, name: str) -> str:
        """Whom a rule means: a principal's name, or an account."""
        return name if self._is_name(name) else self.person(name)

    def roles(self, subject: str) -> set[str] | None:
        """The roles by the subject's principal; None where there is none."""
        found = self.of_account(subject)
        if found is None:
            return None
        return set() if found.get("disabled") else set(found.get("roles", ()))

    def behind(self, agent: str) -> set[str]:
        """The principals on whose behalf an agent acts."""
        every = (*self.principals.items(), *self.local.items())
        return {name for name, one in every if agent in one.get("agents", ())}

    def _is_name(self, name: str) -> bool:
        return name in self.principals or name in self.local


def _holder(documents: Documents, subject: str) -> dict[str, Any] | None:
    return next((one for one in documents.values() if subject in one["subjects"]), None)
