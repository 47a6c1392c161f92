"""Who may decide a hold: the rule, for the decider that enforces it and for the door that lists what is one's own."""

from collections.abc import Callable

from msgspec import Struct

from schemas.actor import Actor
from schemas.principals import TenantPeople
from schemas.refusals import Refusal
from schemas.requirement import ANY_REVIEWER


class Asked(Struct, frozen=True):
    """Whom a hold asks, as it stands; `delegated_to` is to whom it was handed on, empty for nobody."""

    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    excluded: tuple[str, ...]
    exclude_requester: bool
    delegated_to: str

    @property
    def asked_roles(self) -> tuple[str, ...]:
        """The roles by which it may be decided; none where only the reviewers that it names may."""
        return self.roles if self.roles or self.reviewers else ANY_REVIEWER


def refusal_to_decide(
    asked: Asked, requesters: Callable[[], frozenset[str]], actor: Actor, people: TenantPeople
) -> tuple[Refusal, str] | None:
    """Why the actor may not decide a hold, or None.

    An agent's token never decides, and nobody whom the rule excludes. Where the hold names roles or reviewers,
    exactly those count, or a delegation to this person; being an admin is not being a treasurer.

    Args:
        asked: whom the hold asks.
        requesters: the people whose own request it is; looked up only where they may not decide it.
        actor: who would decide, with the roles that count.
        people: of the tenant.
    """
    person = people.name_of(actor.subject)
    if actor.agent is not None:
        return Refusal.NOT_AUTHORISED, "an agent's token cannot decide"
    if people.is_disabled(actor.subject):
        return Refusal.NOT_AUTHORISED, "this account may do nothing any more"
    if person in map(people.meant_by, asked.excluded):
        return Refusal.NOT_AUTHORISED, "the rule excludes you from deciding this"
    if asked.exclude_requester and person in requesters():
        return (
            Refusal.OWN_REQUEST,
            "the rule wants another person than those who asked or whom the agent acts for",
        )
    if asked.delegated_to and people.meant_by(asked.delegated_to) == person:
        return None
    if person in map(people.meant_by, asked.reviewers) or set(asked.asked_roles) & set(actor.roles):
        return None
    if asked.roles or asked.reviewers:
        named = ", ".join((*asked.roles, *asked.reviewers))
        return Refusal.FORBIDDEN_ROLE, f"needs one of the roles, or to be one of the reviewers: {named}"
    return Refusal.FORBIDDEN_ROLE, "needs the role reviewer"


def people_behind(agent: str, started_by: str, user: str, people: TenantPeople) -> frozenset[str]:
    """For whom an agent acts: who started the run, its user, and the principals who have the agent among theirs.

    Whoever starts a run may name its user by an account, or as a policy names people.
    """
    named = {people.name_of(name) for name in (started_by, user) if name}
    meant = {people.meant_by(user)} if user else set()
    return frozenset(named | meant) | set(people.delegators_of(agent))
