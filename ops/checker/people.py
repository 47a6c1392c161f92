"""The checker's own reading of published principals: who an account is, and which roles it had when.

Written apart from `schemas.principals` on purpose: a mistake there must not be repeated here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ops.checker.facts import Fact


@dataclass(slots=True)
class PeopleSeen:
    """All versions of all principals, as the definitions topic has them."""

    _versions: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    def read(self, fact: Fact) -> None:
        """Take a PrincipalPublished."""
        self._versions.append((fact.offset, fact.tenant, json.loads(fact.body.document)))

    def at(self, tenant: str, through_offset: int) -> PeopleAt:
        """The principals of a tenant as the definitions up to an offset have them."""
        newest: dict[str, dict[str, Any]] = {}
        for offset, owner, document in self._versions:
            if owner == tenant and offset <= through_offset:
                newest[document["principal"]] = document
        return PeopleAt(newest)


@dataclass(frozen=True, slots=True)
class PeopleAt:
    """A tenant's principals at one moment, by name."""

    principals: dict[str, dict[str, Any]]

    def of_account(self, subject: str) -> dict[str, Any] | None:
        """The principal whose account a subject is."""
        return next((one for one in self.principals.values() if subject in one["subjects"]), None)

    def person(self, subject: str) -> str:
        """Who a subject is; one that only bears a principal's name is somebody else."""
        found = self.of_account(subject)
        if found is not None:
            return str(found["principal"])
        return f"account {subject}" if subject in self.principals else subject

    def meant(self, name: str) -> str:
        """Whom a rule means: a principal's name, or an account."""
        return name if name in self.principals else self.person(name)

    def roles(self, subject: str) -> set[str] | None:
        """The roles by the subject's principal; None where there is none."""
        found = self.of_account(subject)
        if found is None:
            return None
        return set() if found.get("disabled") else set(found.get("roles", ()))

    def behind(self, agent: str) -> set[str]:
        """The principals on whose behalf an agent acts."""
        return {name for name, one in self.principals.items() if agent in one.get("agents", ())}
