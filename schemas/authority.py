"""Who can decide a hold: the rule that the decider enforces, and by which the APIs list a person's own holds."""

from collections.abc import Callable
from functools import lru_cache

import msgspec
from msgspec import Struct

from schemas.actor import Actor
from schemas.principals import TenantPeople
from schemas.refusals import Refusal
from schemas.requirement import roles_asked

OWN_REQUEST = (
    "it takes a person other than those who asked, who wrote to the agent before, or for whom it acts"
)
Requesters = Callable[[], frozenset[str]]


class Delegation(Struct, frozen=True):
    """A delegation of a hold: the delegating account, its roles then, and the named recipient.

    `person` is the principal whose account it was, or empty if none was published.
    """

    by: str
    to: str
    roles: tuple[str, ...] = ()
    person: str = ""


_DECODER = msgspec.json.Decoder(tuple[Delegation, ...])


def delegations_to_text(delegations: tuple[Delegation, ...]) -> str:
    """The JSON of a hold's delegations, as in a row of the views."""
    return msgspec.json.encode(delegations).decode()


@lru_cache(maxsize=1024)
def delegations_from_text(text: str | None) -> tuple[Delegation, ...]:
    """The delegations of a JSON text; none without a text.

    Raises:
        msgspec.MsgspecError: the text was not made by `delegations_to_text`.
    """
    return () if text is None else _DECODER.decode(text)


class Asked(Struct, frozen=True):
    """The people whom a hold asks now; `delegations` are all it had, the oldest first: only the last one counts."""

    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    exclude_requester: bool = False
    delegations: tuple[Delegation, ...] = ()

    @property
    def asked_roles(self) -> tuple[str, ...]:
        """The roles that can decide it; none if only its named reviewers can."""
        return roles_asked(self)


def refusal_to_decide(
    asked: Asked, requesters: Requesters, actor: Actor, people: TenantPeople
) -> tuple[Refusal, str] | None:
    """Why the actor cannot decide a hold, or None.

    Agents' tokens and people whom the rule excludes never decide. If the hold names roles or reviewers, exactly those
    count, or a delegation to this person by somebody who still can decide; an admin is not a treasurer.

    Args:
        asked: the people whom the hold asks.
        requesters: the people whose own request it is; called only if they cannot decide it themselves.
        actor: the person who would decide, with the roles that count.
        people: the people of the tenant.
    """
    if actor.agent is not None:
        return Refusal.NOT_AUTHORISED, "an agent's token cannot decide"
    if people.is_disabled(actor.subject):
        return Refusal.NOT_AUTHORISED, "this account is disabled"
    if (for_another := refusal_for_another(actor, people)) is not None:
        return for_another
    if (problem := _exclusion(asked, requesters, actor.subject, people)) is not None:
        return problem
    if could_decide(asked, actor.subject, actor.roles, people):
        return None
    hands = hands_to(asked, actor.subject, actor.roles, people)
    if hands:
        if not still_hand_on(asked, requesters, hands, people):
            return Refusal.FORBIDDEN_ROLE, "the person who delegated the hold to you can no longer decide it"
        return None
    if asked.roles or asked.reviewers:
        named = ", ".join((*asked.roles, *asked.reviewers))
        return Refusal.FORBIDDEN_ROLE, f"needs one of the roles, or to be one of the reviewers: {named}"
    return Refusal.FORBIDDEN_ROLE, "needs the role reviewer"


def refusal_for_another(actor: Actor, people: TenantPeople) -> tuple[Refusal, str] | None:
    """Why a token that is for a user cannot decide, or None if that user is its own subject.

    The voice would be that of two people: counted once, four eyes could be one person's; counted as either, the other
    could add a second one by their own token.
    """
    if not actor.user or people.is_only(actor.subject, actor.user):
        return None
    detail = (
        f"this token is for the user {actor.user}, and people decide by a token of their own. If {actor.subject} is "
        "an account of theirs, publish it as such (placet principals put)"
    )
    return Refusal.NOT_AUTHORISED, detail


def could_decide(asked: Asked, by: str, had: tuple[str, ...], people: TenantPeople) -> bool:
    """Returns True if an account can decide a hold without a delegation: as a named reviewer or by its roles."""
    return people.is_among(by, asked.reviewers) or bool(set(asked.asked_roles) & set(had))


def hands_to(
    asked: Asked, to: str, had: tuple[str, ...], people: TenantPeople, *, bars: bool = False
) -> tuple[Delegation, ...]:
    """The chain of delegations to an account, back to the delegator who could decide without a delegation.

    Args:
        asked: the people whom the hold asks, with its delegations at the time of the decision.
        to: the account that decides.
        had: its roles then.
        people: the people of the tenant.
        bars: true to find the people for whom the account decided, in order to exclude those: then a delegation to
            the name of a former account counts as well.

    Returns:
        No delegations if the account could decide without one, or if the hold was not delegated to it.
    """
    hands: list[Delegation] = []
    for handed in reversed(asked.delegations):
        # Each delegator who could not decide without a delegation had the one that was the last at that time.
        if could_decide(asked, to, had, people) or not _is_handed_to(handed, to, people, bars):
            break
        hands.append(handed)
        to, had = handed.by, handed.roles
    return tuple(hands)


def still_hand_on(
    asked: Asked, requesters: Requesters, hands: tuple[Delegation, ...], people: TenantPeople
) -> bool:
    """Returns True if every delegator of a chain still counts, and the first could still decide without a delegation.

    None of them may be excluded by the rule, or be a requester if the rule requires another person. If the first is
    not published, a lost role cannot be seen: what the decider saw at the delegation stands.
    """
    if not all(may_still_vote(asked, requesters, one.by, one.person, people) for one in hands):
        return False
    first = hands[-1]
    # Before the second version of HoldDelegated no roles were recorded.
    is_proven = not first.roles and first == asked.delegations[0]
    return keeps_role(asked, first.by, first.roles, people, is_proven=is_proven)


def may_still_vote(asked: Asked, requesters: Requesters, by: str, person: str, people: TenantPeople) -> bool:
    """Returns True if an account is unchanged, and is not known now to be excluded from deciding this hold.

    Args:
        asked: the people whom the hold asks.
        requesters: the people whose own request it is, as far as is known now.
        by: the account.
        person: the principal whose account it was.
        people: the tenant's people now.
    """
    return not people.is_other(by, person) and _exclusion(asked, requesters, by, people) is None


def keeps_role(
    asked: Asked, by: str, had: tuple[str, ...], people: TenantPeople, *, is_proven: bool = False
) -> bool:
    """Returns True if an account that could decide then still could now by its role, as far as that can be seen.

    Args:
        asked: the people whom the hold asks.
        by: the account.
        had: its roles then.
        people: the tenant's people now.
        is_proven: the result for an unpublished account whose roles then are not known.
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
    asked: Asked,
    requesters: Requesters,
    by: str,
    people: TenantPeople,
) -> tuple[Refusal, str] | None:
    person = people.name_of(by)
    if person in map(people.meant_by, asked.excluded):
        return Refusal.NOT_AUTHORISED, "the rule excludes you from deciding this"
    if asked.exclude_requester and person in requesters():
        return Refusal.OWN_REQUEST, OWN_REQUEST
    return None


def people_behind(agent: str, started_by: str, user: str, people: TenantPeople) -> frozenset[str]:
    """The people for whom an agent acts: who started the run, its user, and the principals that list the agent.

    The user of a run can be named by an account, or in the way that policies name people.
    """
    started = people.names_of([started_by] if started_by else [])
    users = people.meant_by_any([user] if user else [])
    return started | users | frozenset(people.delegators_of(agent))
