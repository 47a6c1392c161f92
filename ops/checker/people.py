"""The checker's own reading of published principals: who an account is, and which roles it had when.

Written apart from `schemas.principals` on purpose: a mistake there must not be repeated here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
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
        seen = {TENANTS: PlaceSeen(), project: PlaceSeen()}
        for offset, owner, place, document in self._versions:
            if owner == tenant and place in seen and offset <= through_offset:
                seen[place].take(document)
        whole, local = seen[TENANTS], seen[project] if project != TENANTS else PlaceSeen()
        return PeopleAt(whole.newest, local.newest, project, local.taken | whole.taken)


@dataclass(slots=True)
class PlaceSeen:
    """The principals of a tenant, or of one project, as far as they were read; `taken` says whose an account was."""

    newest: Documents = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)

    def take(self, document: dict[str, Any]) -> None:
        """Take the next version of a principal."""
        name = document["principal"]
        self.taken.update(dict.fromkeys(self.newest.get(name, {}).get("subjects", ()), name))
        self.newest[name] = document
        for subject in document["subjects"]:
            self.taken.pop(subject, None)


@dataclass(frozen=True, slots=True)
class PeopleAt:
    """A tenant's principals at one moment, by name; and those of one of its projects, which add to them.

    `taken` has the accounts that were taken from a principal and published for nobody since, with its name.
    """

    principals: Documents
    local: Documents = field(default_factory=dict)
    project: str = TENANTS
    taken: dict[str, str] = field(default_factory=dict)

    def of_account(self, subject: str) -> dict[str, Any] | None:
        """The principal whose account a subject is, or was: the tenant's before the project's."""
        found = _holder(self.principals, subject)
        if found is None:
            alone = _holder(self.local, subject)
            if alone is None and subject in self.taken:
                return {"principal": self.taken[subject], "disabled": True}
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

    def may_act(self, subject: str) -> bool:
        """Whether an account may do anything: its principal is not disabled, and it was not taken from one."""
        found = self.of_account(subject)
        return found is None or not found.get("disabled")

    def meant(self, name: str) -> str:
        """Whom a rule bars by a name: a principal, or whose account it is, or was."""
        return name if self._is_name(name) else self.person(name)

    def named(self, names: Iterable[str]) -> set[str]:
        """Who has authority by names, as reviewers or by delegation: nobody by an account that is nobody's now."""
        return {self.meant(name) for name in names if self._is_name(name) or not self._is_taken(name)}

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

    def _is_taken(self, subject: str) -> bool:
        held = _holder(self.principals, subject) or _holder(self.local, subject)
        return held is None and subject in self.taken

    def _is_name(self, name: str) -> bool:
        return name in self.principals or name in self.local


def _holder(documents: Documents, subject: str) -> dict[str, Any] | None:
    return next((one for one in documents.values() if subject in one["subjects"]), None)
