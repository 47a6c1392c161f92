"""Whose voices a hold has: each person's once, whatever the number of their accounts and of their delegates.

A word by delegation is the voice of who handed the hold on: else one who may decide could make anybody the second.
It counts as long as that one's own would.
"""

from collections.abc import Iterator

from schemas.actor import Actor
from schemas.authority import (
    Asked,
    Delegation,
    Requesters,
    could_decide,
    hands_to,
    keeps_role,
    may_still_speak,
    still_hand_on,
)
from schemas.principals import TenantPeople
from schemas.requirement import Requirement, roles_asked
from services.domain.state import Call, Execution, Hold, Vote

REVIEWERS = ("reviewer", "operator")


def approves(hold: Hold, requesters: Requesters, people: TenantPeople, *more: Vote) -> bool:
    """Whether the words that count, with some more, are of as many people as the hold asks for, and of whom it asks.

    Where several rules ask, each rule's own people must be among them, in the number that it asks for. A word counts
    no longer where its account may do nothing any more, is not its person's any more, has lost the role that it was
    given by, or is known by now as a requester's or as somebody's whom the rule excludes; a word by delegation, where
    that is so of who handed the hold on. Of an account that nobody has published no role can be seen to be lost.

    Args:
        hold: the hold.
        requesters: the people whose own request it is, as far as is known now.
        people: of the tenant.
        more: words that are given now, by who may.
    """
    votes = [*counting(hold, requesters, people), *more]
    return _voices_of(hold, votes, people) >= hold.quorum and all(
        _voices_of(hold, [vote for vote in votes if _meets(hold, vote, one, people)], people) >= one.quorum
        for one in hold.requirements
    )


def counting(hold: Hold, requesters: Requesters, people: TenantPeople) -> list[Vote]:
    """The words on a hold that still count, the oldest first."""
    own = requesters() if hold.votes and hold.exclude_requester else frozenset()
    return [vote for vote in hold.votes if _still_counts(hold, lambda: own, vote, people)]


def _voices_of(hold: Hold, votes: list[Vote], people: TenantPeople) -> int:
    speaking = {people.name_of(vote.by) for vote in votes}
    # Fewer of either: a principal may be published meanwhile that makes two of them one person.
    return min(len(speaking), len({voice_of(hold, vote, people) for vote in votes}))


def _meets(hold: Hold, vote: Vote, one: Requirement, people: TenantPeople) -> bool:
    """Whether a word is of one of those whom a requirement names, by themselves or by their delegate."""
    wanted = Asked(one.roles, one.reviewers)
    spoken = [(handed.by, handed.roles) for handed in _hands(hold, vote, people)] or [(vote.by, vote.roles)]
    return any(_is_of(wanted, by, had, people) for by, had in spoken)


def _is_of(wanted: Asked, by: str, had: tuple[str, ...], people: TenantPeople) -> bool:
    """Whether an account is named, or has one of the roles that are wanted: then, and now where that can be seen."""
    roles = people.roles_of(by)
    kept = had if roles is None else tuple(set(had) & set(roles))
    return could_decide(wanted, by, kept, people)


def word_of(hold: Hold, actor: Actor, people: TenantPeople) -> Vote:
    """The word that an actor would give now."""
    return Vote(actor.subject, actor.roles, people.principal_of(actor.subject), len(hold.delegations))


def has_spoken(hold: Hold, actor: Actor, people: TenantPeople) -> bool:
    """Whether one of the hold's words is the actor's own, by any of their accounts that may still speak."""
    return people.name_of(actor.subject) in people.names_of(
        vote.by for vote in hold.votes if not people.is_disabled(vote.by)
    )


def is_spoken_for(hold: Hold, requesters: Requesters, actor: Actor, people: TenantPeople) -> bool:
    """Whether the actor's approval is a voice that the hold has already: their delegate's, or their delegator's."""
    voices = {voice_of(hold, vote, people) for vote in counting(hold, requesters, people)}
    return voice_of(hold, word_of(hold, actor, people), people) in voices


def voice_of(hold: Hold, vote: Vote, people: TenantPeople) -> str:
    """Whose voice a word is: its person's, or that of who handed the hold on to one who may not decide otherwise."""
    hands = _hands(hold, vote, people)
    return people.name_of(hands[-1].by if hands else vote.by)


def edited_by(state: Execution, call: Call, people: TenantPeople) -> frozenset[str]:
    """Whose voices the edits of a call were: also of all through whose hands the hold came to its editor."""
    return people.names_of(
        by
        for hold in (state.holds[hold_id] for hold_id in call.handed_on)
        for vote in hold.votes
        if vote.by in call.requesters
        for by in (
            vote.by,
            *(handed.by for handed in _hands(hold, vote, people, bars=True)),
            *_hands_then(hold, vote),
        )
    )


def asked_by(hold: Hold, delegations: int | None = None) -> Asked:
    """Whom a hold asks, with its first delegations or all of them."""
    return Asked(
        hold.roles, hold.reviewers, hold.excluded, hold.exclude_requester, hold.delegations[:delegations]
    )


def _hands(hold: Hold, vote: Vote, people: TenantPeople, *, bars: bool = False) -> tuple[Delegation, ...]:
    return hands_to(asked_by(hold, vote.delegations), vote.by, vote.roles, people, bars=bars)


def _hands_then(hold: Hold, vote: Vote) -> Iterator[str]:
    """Through whose hands a hold came to a voter, by the names of then: a principal of today undoes no delegation."""
    to, person, had = vote.by, vote.person, vote.roles
    for handed in reversed(hold.delegations[: vote.delegations]):
        if set(roles_asked(hold)) & set(had) or {to, person} & set(hold.reviewers):
            return
        if handed.to not in (to, person):
            return
        yield handed.by
        to, person, had = handed.by, handed.person, handed.roles


def _still_counts(hold: Hold, requesters: Requesters, vote: Vote, people: TenantPeople) -> bool:
    asked = asked_by(hold, vote.delegations)
    if not may_still_speak(asked, requesters, vote.by, vote.person, people):
        return False
    if hands := _hands(hold, vote, people):
        return still_hand_on(asked, requesters, hands, people)
    return keeps_role(asked, vote.by, vote.roles, people)
