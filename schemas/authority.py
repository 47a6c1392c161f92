"""Who may decide a hold: the rule, for the decider that enforces it and for the door that lists what is one's own."""

from collections.abc import Callable
from functools import lru_cache

import msgspec
from msgspec import Struct

from schemas.actor import Actor
from schemas.principals import TenantPeople
from schemas.refusals import Refusal
from schemas.requirement import roles_asked

Requesters = Callable[[], frozenset[str]]


class Delegation(Struct, frozen=True):
    """A hold handed on: by which account, with which roles, and to whom it named.

    `person` is the principal whose account that was, empty where none was published.
    """

    by: str
    to: str
    roles: tuple[str, ...] = ()
    person: str = ""


_DECODER = msgspec.json.Decoder(tuple[Delegation, ...])


def delegations_to_text(delegations: tuple[Delegation, ...]) -> str:
    """The JSON of a hold's delegations, as a view's row has it."""
    return msgspec.json.encode(delegations).decode()


@lru_cache(maxsize=1024)
def delegations_from_text(text: str | None) -> tuple[Delegation, ...]:
    """The delegations of a JSON text; none where there is no text.

    Raises:
        msgspec.MsgspecError: it is none of `delegations_to_text`.
    """
    return () if text is None else _DECODER.decode(text)


class Asked(Struct, frozen=True):
    """Whom a hold asks, as it stands; `delegations` are all that it had, the oldest first: the last one counts."""

    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    exclude_requester: bool = False
    delegations: tuple[Delegation, ...] = ()

    @property
    def asked_roles(self) -> tuple[str, ...]:
        """The roles by which it may be decided; none where only the reviewers that it names may."""
        return roles_asked(self)


def refusal_to_decide(
    asked: Asked, requesters: Requesters, actor: Actor, people: TenantPeople
) -> tuple[Refusal, str] | None:
    """Why the actor may not decide a hold, or None.

    An agent's token never decides, and nobody whom the rule excludes. Where the hold names roles or reviewers,
    exactly those count, or a delegation to this person by somebody who still may; being an admin is not being a
    treasurer.

    Args:
        asked: whom the hold asks.
        requesters: the people whose own request it is; looked up only where they may not decide it.
        actor: who would decide, with the roles that count.
        people: of the tenant.
    """
    if actor.agent is not None:
        return Refusal.NOT_AUTHORISED, "an agent's token cannot decide"
    if people.is_disabled(actor.subject):
        return Refusal.NOT_AUTHORISED, "this account may do nothing any more"
    if (problem := _exclusion(asked, requesters, actor.subject, people)) is not None:
        return problem
    if could_decide(asked, actor.subject, actor.roles, people):
        return None
    hands = hands_to(asked, actor.subject, actor.roles, people)
    if hands:
        if not still_hand_on(asked, requesters, hands, people):
            return Refusal.FORBIDDEN_ROLE, "who handed the hold on to you may not decide it any more"
        return None
    if asked.roles or asked.reviewers:
        named = ", ".join((*asked.roles, *asked.reviewers))
        return Refusal.FORBIDDEN_ROLE, f"needs one of the roles, or to be one of the reviewers: {named}"
    return Refusal.FORBIDDEN_ROLE, "needs the role reviewer"


def could_decide(asked: Asked, by: str, had: tuple[str, ...], people: TenantPeople) -> bool:
    """Whether an account with some roles may decide a hold by itself: it is named, or has a role that is asked."""
    return people.is_among(by, asked.reviewers) or bool(set(asked.asked_roles) & set(had))


def hands_to(
    asked: Asked, to: str, had: tuple[str, ...], people: TenantPeople, *, bars: bool = False
) -> tuple[Delegation, ...]:
    """The delegations by which somebody speaks on a hold, back to that of one who could decide by themselves.

    Args:
        asked: whom the hold asks, with the delegations that it had when they spoke.
        to: the account that speaks.
        had: its roles then.
        people: of the tenant.
        bars: whether it is asked for whom they spoke, to bar those: then whom a hold was handed to by the name of a
            former account spoke for who handed it on.

    Returns:
        None of them, where the account could decide by itself or nobody had handed the hold to it.
    """
    hands: list[Delegation] = []
    for handed in reversed(asked.delegations):
        # Each who could not decide by themselves had the delegation that was the last one then.
        if could_decide(asked, to, had, people) or not _is_handed_to(handed, to, people, bars):
            break
        hands.append(handed)
        to, had = handed.by, handed.roles
    return tuple(hands)


def still_hand_on(
    asked: Asked, requesters: Requesters, hands: tuple[Delegation, ...], people: TenantPeople
) -> bool:
    """Whether everybody through whose hands a hold came is there, and the first could still decide by themselves.

    Nobody among them may be one whose own request it is where another person is asked for, or whom the rule excludes.
    Where that one is not published nobody can see a role lost: what the decider saw when they handed it on stands.
    """
    if not all(may_still_speak(asked, requesters, one.by, one.person, people) for one in hands):
        return False
    first = hands[-1]
    # Before the second version of HoldDelegated no roles were recorded.
    is_proven = not first.roles and first == asked.delegations[0]
    return keeps_role(asked, first.by, first.roles, people, is_proven=is_proven)


def may_still_speak(asked: Asked, requesters: Requesters, by: str, person: str, people: TenantPeople) -> bool:
    """Whether an account is what it was, and not now known as one that may not decide this hold, whatever its role.

    Args:
        asked: whom the hold asks.
        requesters: the people whose own request it is, as far as is known now.
        by: the account.
        person: the principal whose account it was.
        people: of the tenant, now.
    """
    return not people.is_other(by, person) and _exclusion(asked, requesters, by, people) is None


def keeps_role(
    asked: Asked, by: str, had: tuple[str, ...], people: TenantPeople, *, is_proven: bool = False
) -> bool:
    """Whether an account that could decide by itself then still could now by its role, where that can be seen.

    Args:
        asked: whom the hold asks.
        by: the account.
        had: its roles then.
        people: of the tenant, now.
        is_proven: what counts for an account that is not published and whose roles then are not known.
    """
    roles = people.roles_of(by)
    if people.is_among(by, asked.reviewers):
        return True
    if roles is None:
        return is_proven or could_decide(asked, by, had, people)
    return could_decide(asked, by, had, people) and bool(set(asked.asked_roles) & set(roles))


def _is_handed_to(handed: Delegation, to: str, people: TenantPeople, bars: bool) -> bool:
    return people.name_of(to) == people.meant_by(handed.to) if bars else people.is_among(to, (handed.to,))


def _exclusion(
    asked: Asked, requesters: Requesters, by: str, people: TenantPeople
) -> tuple[Refusal, str] | None:
    person = people.name_of(by)
    if person in map(people.meant_by, asked.excluded):
        return Refusal.NOT_AUTHORISED, "the rule excludes you from deciding this"
    if asked.exclude_requester and person in requesters():
        return (
            Refusal.OWN_REQUEST,
            "the rule wants another person than those who asked or whom the agent acts for",
        )
    return None


def people_behind(agent: str, started_by: str, user: str, people: TenantPeople) -> frozenset[str]:
    """For whom an agent acts: who started the run, its user, and the principals who have the agent among theirs.

    Whoever starts a run may name its user by an account, or as a policy names people.
    """
    named = {people.name_of(name) for name in (started_by, user) if name}
    meant = {people.meant_by(user)} if user else set()
    return frozenset(named | meant) | set(people.delegators_of(agent))
