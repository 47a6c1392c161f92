"""Principals: the people and services of a tenant, with the accounts that are theirs and the roles that they have.

Where a principal is published, its roles are the ones that count, whatever a token of it says: so a role that was
taken away is gone at once, also for decisions that rest on it. Of a subject that nobody has published, the token's
roles count. One person may have several accounts (subjects), and counts once.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.policy_problems import PolicyRefused, Problem, problems_of
from schemas.token import NAME_MAX_CHARS, RESERVED_ROLE, RESERVED_SUBJECT

Name = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
Subject = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]+$", max_length=NAME_MAX_CHARS)]
# The timer's, and that of an agent's own token, which a principal never changes.
NOT_PEOPLES = frozenset({RESERVED_ROLE, "agent"})


class PrincipalDocument(BaseModel):
    """A person or service: its accounts, its roles, and the agents that act on its behalf."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    principal: Name
    subjects: Annotated[tuple[Subject, ...], Field(min_length=1, max_length=50)]
    roles: Annotated[tuple[Name, ...], Field(max_length=32)] = ()
    agents: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    disabled: StrictBool = False


class Principal(Struct, frozen=True):
    """One principal as it is in force."""

    name: str
    subjects: tuple[str, ...]
    roles: tuple[str, ...]
    agents: tuple[str, ...]
    disabled: bool


class People(Struct, frozen=True):
    """Every published principal; by tenant and name, and by tenant and subject."""

    by_name: Map[tuple[str, str], Principal] = Map()
    by_subject: Map[tuple[str, str], Principal] = Map()
    by_agent: Map[tuple[str, str], tuple[str, ...]] = Map()
    unread: Map[str, frozenset[str]] = Map()

    def with_principal(self, tenant: str, document: PrincipalDocument) -> "People":
        """The people with a version of a principal in place of an earlier one.

        Raises:
            PolicyRefused: a subject is another principal's.
        """
        principal = Principal(
            document.principal, document.subjects, document.roles, document.agents, document.disabled
        )
        self._check_subjects(tenant, principal)
        people = self._without(tenant, principal.name)
        by_subject, by_agent = people.by_subject, people.by_agent
        for subject in principal.subjects:
            by_subject = by_subject.set((tenant, subject), principal)
        for agent in principal.agents:
            owners = (*by_agent.get((tenant, agent), ()), principal.name)
            by_agent = by_agent.set((tenant, agent), owners)
        by_name = people.by_name.set((tenant, principal.name), principal)
        unread = people.unread.set(tenant, people.unread.get(tenant, frozenset()) - {principal.name})
        return replace(people, by_name=by_name, by_subject=by_subject, by_agent=by_agent, unread=unread)

    def without_roles(self, tenant: str, name: str) -> "People":
        """The people where the newest version of a principal cannot be read: it may do nothing.

        Whose accounts those are nobody knows, where no earlier version could be read: then nobody of the tenant has
        any role but those who are published, until a version of Placet runs that can read it.
        """
        earlier = self.by_name.get((tenant, name))
        if earlier is None:
            unread = self.unread.get(tenant, frozenset()) | {name}
            return replace(self, unread=self.unread.set(tenant, unread))
        document = PrincipalDocument(
            principal=name, subjects=earlier.subjects, agents=earlier.agents, disabled=True
        )
        return self.with_principal(tenant, document)

    def of(self, tenant: str) -> "TenantPeople":
        """The people of one tenant."""
        return TenantPeople(self, tenant)

    def _check_subjects(self, tenant: str, principal: Principal) -> None:
        for index, subject in enumerate(principal.subjects):
            owner = self.by_subject.get((tenant, subject))
            if owner is not None and owner.name != principal.name:
                message = f"{subject!r} is an account of {owner.name!r}: one account is one person's"
                raise PolicyRefused((Problem(path=f"subjects[{index}]", code="taken", message=message),))

    def _without(self, tenant: str, name: str) -> "People":
        earlier = self.by_name.get((tenant, name))
        if earlier is None:
            return self
        by_subject, by_agent = self.by_subject, self.by_agent
        for subject in earlier.subjects:
            by_subject = by_subject.delete((tenant, subject))
        for agent in earlier.agents:
            owners = tuple(owner for owner in by_agent[(tenant, agent)] if owner != name)
            by_agent = by_agent.set((tenant, agent), owners)
        return replace(self, by_subject=by_subject, by_agent=by_agent)


class TenantPeople(Struct, frozen=True):
    """The people of one tenant, as a decision looks at them."""

    people: People
    tenant: str

    def name_of(self, subject: str) -> str:
        """Who a subject is: its principal's name, or the subject itself where no principal is published.

        A subject that merely bears the name of a principal is not that principal.
        """
        principal = self.people.by_subject.get((self.tenant, subject))
        if principal is not None:
            return principal.name
        return f"subject/{subject}" if (self.tenant, subject) in self.people.by_name else subject

    def names_of(self, subjects: Iterable[str]) -> frozenset[str]:
        """Who several subjects are; each person once."""
        return frozenset(map(self.name_of, subjects))

    def meant_by(self, name: str) -> str:
        """Whom a policy or a person means by a name: the principal of that name, else whose account it is."""
        return name if (self.tenant, name) in self.people.by_name else self.name_of(name)

    def principal_of(self, subject: str) -> str:
        """The name of the subject's principal, empty where none is published."""
        principal = self.people.by_subject.get((self.tenant, subject))
        return "" if principal is None else principal.name

    def roles_of(self, subject: str) -> tuple[str, ...] | None:
        """The roles that a subject has by its principal; None where none is published, and nobody can tell."""
        principal = self.people.by_subject.get((self.tenant, subject))
        if principal is None:
            return () if self.people.unread.get(self.tenant) else None
        return () if principal.disabled else principal.roles

    def is_disabled(self, subject: str) -> bool:
        """Whether the subject is an account of a principal that may do nothing."""
        principal = self.people.by_subject.get((self.tenant, subject))
        return principal is not None and principal.disabled

    def delegators_of(self, agent: str) -> tuple[str, ...]:
        """The principals on whose behalf an agent acts."""
        return self.people.by_agent.get((self.tenant, agent), ())

    def resolved(self, actor: Actor) -> Actor:
        """The actor with the roles that count. An agent's token, and the system itself, have no roles of people."""
        is_person = actor.agent is None and RESERVED_ROLE not in actor.roles
        roles = self.roles_of(actor.subject) if is_person else None
        return actor if roles is None or roles == actor.roles else actor.model_copy(update={"roles": roles})


def principal_from_value(value: Any) -> PrincipalDocument:
    """Read a principal from parsed JSON.

    Raises:
        PolicyRefused: with every problem of form.
    """
    if not isinstance(value, dict):
        message = "a principal is an object with principal, subjects and roles"
        raise PolicyRefused((Problem(path="principal", code="malformed", message=message),))
    try:
        document = PrincipalDocument.model_validate(value)
    except ValidationError as error:
        raise PolicyRefused(problems_of(error, PrincipalDocument)) from error
    if problems := tuple(_problems(document)):
        raise PolicyRefused(problems)
    return document


def principal_to_json(document: PrincipalDocument) -> str:
    """The document as canonical JSON with the fields that were written: what is published."""
    return canonical(document.model_dump(mode="json", exclude_unset=True))


def _problems(document: PrincipalDocument) -> Iterable[Problem]:
    for index, subject in enumerate(document.subjects):
        if subject.startswith(RESERVED_SUBJECT):
            message = f"subjects {RESERVED_SUBJECT}… are Placet's own; remove it"
            yield Problem(path=f"subjects[{index}]", code="reserved", message=message)
    for role in sorted(NOT_PEOPLES & set(document.roles)):
        message = f"the role {role} is no person's; remove it"
        yield Problem(path="roles", code="reserved", message=message)
    for name in ("subjects", "roles", "agents"):
        values: tuple[str, ...] = getattr(document, name)
        if len(set(values)) < len(values):
            yield Problem(path=name, code="repeated", message="a value stands here twice; remove one")
