"""Principals: the people and services of a tenant, with their accounts and roles.

If a principal is published, its published roles count, whatever its tokens say: so the withdrawal of a role takes
effect at once, also for decisions that rest on it. For a subject without a published principal, the token's roles
count. One person can have several accounts (subjects), and counts once.

A principal belongs to the tenant and counts in each of its projects, or it belongs to one project and counts there
only.
"""

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from schemas.actor import RESERVED_ROLE, RESERVED_SUBJECT, Actor
from schemas.canonical import canonical
from schemas.ids import CLIENT_ID, TENANT_WIDE
from schemas.limits import NAME_MAX_CHARS
from schemas.policy_problems import PolicyRefused, Problem, problems_of

Name = Annotated[StrictStr, Field(pattern=f"^{CLIENT_ID}$")]
Subject = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]+$", max_length=NAME_MAX_CHARS)]
Place = tuple[str, str, str]  # tenant, project, and a name, an account or an agent
# Roles of the timer and of an agent's own token, which no principal changes.
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
    """Every published principal, by tenant, project and name, and by tenant, project and subject.

    The project is `*` if the principal is the tenant's.
    """

    by_name: Map[Place, Principal] = Map()
    by_subject: Map[Place, Principal] = Map()
    by_agent: Map[Place, tuple[str, ...]] = Map()
    unread: Map[tuple[str, str], frozenset[str]] = Map()
    former: Map[Place, str] = Map()

    def with_principal(
        self, tenant: str, document: PrincipalDocument, project: str = TENANT_WIDE
    ) -> "People":
        """The people with a new version of a principal in place of its earlier one.

        Raises:
            PolicyRefused: a subject belongs to another principal.
        """
        principal = Principal(
            document.principal, document.subjects, document.roles, document.agents, document.disabled
        )
        self._check_subjects(tenant, project, principal)
        people = self._without(tenant, project, principal.name)
        by_subject, by_agent = people.by_subject, people.by_agent
        for subject in principal.subjects:
            by_subject = by_subject.set((tenant, project, subject), principal)
        for agent in principal.agents:
            owners = (*by_agent.get((tenant, project, agent), ()), principal.name)
            by_agent = by_agent.set((tenant, project, agent), owners)
        by_name = people.by_name.set((tenant, project, principal.name), principal)
        place = (tenant, project)
        unread = people.unread.set(place, people.unread.get(place, frozenset()) - {principal.name})
        former = self._former_after(tenant, project, principal)
        return replace(
            people, by_name=by_name, by_subject=by_subject, by_agent=by_agent, unread=unread, former=former
        )

    def check_beside_tenant(self, tenant: str, project: str, document: PrincipalDocument) -> None:
        """Refuse a project's principal that takes an account from a person of the whole tenant, or gives them one.

        Checked only when it is published, not for published ones: the tenant may have published its own since.

        Raises:
            PolicyRefused: only the tenant can assign a subject.
        """
        if project == TENANT_WIDE:
            return
        whole = self.by_name.get((tenant, TENANT_WIDE, document.principal))
        for index, subject in enumerate(document.subjects):
            owner = self.by_subject.get((tenant, TENANT_WIDE, subject))
            if owner is not None and owner.name != document.principal:
                message = f"{subject!r} is an account of {owner.name!r} in the whole tenant"
            elif owner is None and whole is not None:
                message = f"{document.principal!r} is a person of the whole tenant: only the tenant gives it accounts"
            else:
                continue
            raise PolicyRefused((Problem(path=f"subjects[{index}]", code="taken", message=message),))

    def without_roles(self, tenant: str, name: str, project: str = TENANT_WIDE) -> "People":
        """The people if the newest version of a principal cannot be read: the principal is disabled.

        If no earlier version could be read either, its accounts are unknown: then no unpublished subject of the
        tenant, or of the project, has any role until a version of Placet runs that can read it.
        """
        earlier = self.by_name.get((tenant, project, name))
        if earlier is None:
            place = (tenant, project)
            unread = self.unread.get(place, frozenset()) | {name}
            return replace(self, unread=self.unread.set(place, unread))
        document = PrincipalDocument(
            principal=name, subjects=earlier.subjects, agents=earlier.agents, disabled=True
        )
        return self.with_principal(tenant, document, project)

    def of(self, tenant: str, project: str = TENANT_WIDE) -> "TenantPeople":
        """The people of a tenant, as one of its projects sees them."""
        return TenantPeople(self, tenant, project)

    def _check_subjects(self, tenant: str, project: str, principal: Principal) -> None:
        for index, subject in enumerate(principal.subjects):
            owner = self.by_subject.get((tenant, project, subject))
            if owner is not None and owner.name != principal.name:
                message = (
                    f"{subject!r} is an account of {owner.name!r}: an account belongs to only one person"
                )
                raise PolicyRefused((Problem(path=f"subjects[{index}]", code="taken", message=message),))

    def _former_after(self, tenant: str, project: str, principal: Principal) -> Map[Place, str]:
        """The accounts that were removed from a principal and belong to nobody since, each with that principal."""
        former, earlier = self.former, self.by_name.get((tenant, project, principal.name))
        for subject in () if earlier is None else earlier.subjects:
            former = former.set((tenant, project, subject), principal.name)
        for subject in principal.subjects:
            place = (tenant, project, subject)
            former = former.delete(place) if place in former else former
        return former

    def _without(self, tenant: str, project: str, name: str) -> "People":
        earlier = self.by_name.get((tenant, project, name))
        if earlier is None:
            return self
        by_subject, by_agent = self.by_subject, self.by_agent
        for subject in earlier.subjects:
            by_subject = by_subject.delete((tenant, project, subject))
        for agent in earlier.agents:
            owners = tuple(owner for owner in by_agent[tenant, project, agent] if owner != name)
            by_agent = by_agent.set((tenant, project, agent), owners)
        return replace(self, by_subject=by_subject, by_agent=by_agent)


class Person(NamedTuple):
    """The owner of an account, and the principals that give it roles; without any it has none."""

    name: str
    principals: tuple[Principal, ...]


class TenantPeople(Struct, frozen=True):
    """The people of one tenant as they count in one of its projects.

    A person of the whole tenant is the same person in every project. The project's own principal of the same name
    adds roles and agents there, or disables the person there; it adds no accounts. Everybody else is as the project's
    principals define.
    """

    people: People
    tenant: str
    project: str = TENANT_WIDE

    def name_of(self, subject: str) -> str:
        """The person of a subject: its principal's name, or the subject itself if no principal is published.

        A subject that merely has the name of a principal is not that principal. An account that was removed from its
        principal does not become a second person: its requests are still that principal's own.
        """
        person = self._person(subject)
        if person is not None:
            return person.name
        if (former := self._was_of(subject)) is not None:
            return former
        return f"subject/{subject}" if self._is_name(subject) else subject

    def names_of(self, subjects: Iterable[str]) -> frozenset[str]:
        """The persons of several subjects, each once."""
        return frozenset(map(self.name_of, subjects))

    def meant_by(self, name: str) -> str:
        """The person meant by a name: the principal of that name, else the owner or former owner of that account.

        For rules that exclude people. Rules that give authority use `is_among`.
        """
        return name if self._is_name(name) else self.name_of(name)

    def meant_by_any(self, names: Iterable[str]) -> frozenset[str]:
        """The persons meant by several names, each of which is an account, or a name as policies use it."""
        found = tuple(names)
        return self.names_of(found) | frozenset(map(self.meant_by, found))

    def is_only(self, subject: str, name: str) -> bool:
        """Returns True if a name, as an account or as policies use it, means the person of a subject and no other."""
        other = self._person(name)
        own = self.name_of(subject)
        return self.meant_by(name) == own and (other is None or other.name == own)

    def is_among(self, subject: str, names: Iterable[str]) -> bool:
        """Returns True if names, of a rule's reviewers or of a delegation, give authority to a subject.

        An account that was removed from its principal belongs to nobody: its name gives that principal no authority,
        and the principal's names give none to the account.
        """
        if self._is_taken(subject):
            return False
        person = self.name_of(subject)
        return any(self.meant_by(name) == person for name in names if not self._is_nobodys(name))

    def knows(self, name: str) -> bool:
        """Returns True if a name can be a person's: a principal's, an account's, or any if none is published."""
        if self._is_name(name) or self._person(name) is not None or self._is_anything_unread():
            return True
        places = {TENANT_WIDE, self.project}
        return not any(tenant == self.tenant and at in places for tenant, at, _ in self.people.by_name)

    def principal_of(self, subject: str) -> str:
        """The name of the subject's principal, or empty if none is published."""
        person = self._person(subject)
        return "" if person is None else person.name

    def roles_of(self, subject: str) -> tuple[str, ...] | None:
        """The roles that its principals give a subject; None if none is published and the roles are unknown."""
        person = self._person(subject)
        if person is None:
            return () if self._is_anything_unread() or self._was_of(subject) is not None else None
        if _may_nothing(person):
            return ()
        return tuple(dict.fromkeys(role for one in person.principals for role in one.roles))

    def is_disabled(self, subject: str) -> bool:
        """Returns True if the subject can do nothing: its principal is disabled, or no longer has this account."""
        person = self._person(subject)
        return self._is_taken(subject) if person is None else _may_nothing(person)

    def is_other(self, subject: str, person: str) -> bool:
        """Returns True if an account has changed: it is disabled, or no longer belongs to the recorded principal."""
        return self.is_disabled(subject) or bool(person and person != self.principal_of(subject))

    def accounts_of(self, name: str) -> tuple[str, ...]:
        """The accounts of a principal; none if no principal of that name is published."""
        found = self._named(TENANT_WIDE, name) or self._named(self.project, name)
        return () if found is None else found.subjects

    def delegators_of(self, agent: str) -> tuple[str, ...]:
        """The principals on whose behalf an agent acts."""
        by_agent, tenant = self.people.by_agent, self.tenant
        here = by_agent.get((tenant, self.project, agent), ()) if self.project != TENANT_WIDE else ()
        return tuple(dict.fromkeys((*by_agent.get((tenant, TENANT_WIDE, agent), ()), *here)))

    def resolved(self, actor: Actor) -> Actor:
        """The actor with the roles that count. An agent's token and the system itself keep their own roles."""
        is_person = actor.agent is None and RESERVED_ROLE not in actor.roles
        roles = self.roles_of(actor.subject) if is_person else None
        return actor if roles is None or roles == actor.roles else actor.model_copy(update={"roles": roles})

    def _person(self, subject: str) -> Person | None:
        by_subject, tenant, project = self.people.by_subject, self.tenant, self.project
        whole = by_subject.get((tenant, TENANT_WIDE, subject))
        if project == TENANT_WIDE:
            return None if whole is None else Person(whole.name, (whole,))
        if whole is not None:
            here = self._named(project, whole.name)
            return Person(whole.name, (whole,) if here is None else (whole, here))
        here = by_subject.get((tenant, project, subject))
        if here is None:
            return None
        if self._named(TENANT_WIDE, here.name) is not None or self.people.unread.get((tenant, TENANT_WIDE)):
            # The tenant has published a person of this name since, with other accounts or with unreadable ones.
            return Person(f"{project}/{here.name}", ())
        return Person(here.name, (here,))

    def _is_nobodys(self, name: str) -> bool:
        """Returns True if a name is only that of an account that was removed from its principal."""
        return not self._is_name(name) and self._is_taken(name)

    def _is_taken(self, subject: str) -> bool:
        """Returns True if a subject is an account that was removed from its principal and belongs to nobody now."""
        return self._person(subject) is None and self._was_of(subject) is not None

    def _was_of(self, subject: str) -> str | None:
        """The former owner of a subject that belongs to nobody now."""
        whole = self.people.former.get((self.tenant, TENANT_WIDE, subject))
        return whole or self.people.former.get((self.tenant, self.project, subject))

    def _named(self, project: str, name: str) -> Principal | None:
        return self.people.by_name.get((self.tenant, project, name))

    def _is_name(self, name: str) -> bool:
        return self._named(TENANT_WIDE, name) is not None or self._named(self.project, name) is not None

    def _is_anything_unread(self) -> bool:
        unread = self.people.unread
        return bool(unread.get((self.tenant, TENANT_WIDE)) or unread.get((self.tenant, self.project)))


def _may_nothing(person: Person) -> bool:
    return not person.principals or any(one.disabled for one in person.principals)


def principal_from_value(value: Any) -> PrincipalDocument:
    """Read a principal from parsed JSON.

    Raises:
        PolicyRefused: with every problem of its form.
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
    """The document to publish, as canonical JSON with only the fields that were written."""
    return canonical(document.model_dump(mode="json", exclude_unset=True))


def _problems(document: PrincipalDocument) -> Iterable[Problem]:
    for index, subject in enumerate(document.subjects):
        if subject.startswith(RESERVED_SUBJECT):
            message = f"subjects {RESERVED_SUBJECT}… are reserved for Placet; remove it"
            yield Problem(path=f"subjects[{index}]", code="reserved", message=message)
    for role in sorted(NOT_PEOPLES & set(document.roles)):
        message = f"the role {role} cannot be a person's; remove it"
        yield Problem(path="roles", code="reserved", message=message)
    for name in ("subjects", "roles", "agents"):
        values: tuple[str, ...] = getattr(document, name)
        if len(set(values)) < len(values):
            yield Problem(path=name, code="repeated", message="a value appears here twice; remove one")
