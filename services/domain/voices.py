"""Whose voices a hold has: each person's once, whatever the number of their accounts and of their delegates.

A word by delegation is the voice of who handed the hold on: else one who may decide could make anybody the second.
"""

from schemas.actor import Actor
from schemas.principals import TenantPeople
from schemas.requirement import ANY_REVIEWER, Requirement
from services.domain.state import Call, Execution, Hold, Vote

REVIEWERS = ("reviewer", "operator")


def asked_roles(hold: Hold) -> tuple[str, ...]:
    """The roles by which a hold may be decided; none where only the reviewers that it names may."""
    return hold.roles if hold.roles or hold.reviewers else ANY_REVIEWER


def approves(hold: Hold, people: TenantPeople, *more: Vote) -> bool:
    """Whether the words that count, with some more, are of as many people as the hold asks for, and of whom it asks.

    Where several rules ask, each rule's own people must be among them, in the number that it asks for. A word counts
    no longer where its account may do nothing any more, is not its person's any more, or has lost the role that it
    was given by. Of an account that nobody has published no role can be seen to be lost.
    """
    votes = [*counting(hold, people), *more]
    return _voices_of(hold, votes, people) >= hold.quorum and all(
        _voices_of(hold, [vote for vote in votes if _meets(hold, vote, one, people)], people) >= one.quorum
        for one in hold.requirements
    )


def counting(hold: Hold, people: TenantPeople) -> list[Vote]:
    """The words on a hold that still count, the oldest first."""
    return [vote for vote in hold.votes if _still_counts(hold, vote, people)]


def _voices_of(hold: Hold, votes: list[Vote], people: TenantPeople) -> int:
    speaking = {people.name_of(vote.by) for vote in votes}
    # Fewer of either: a principal may be published meanwhile that makes two of them one person.
    return min(len(speaking), len({voice_of(hold, vote, people) for vote in votes}))


def _meets(hold: Hold, vote: Vote, one: Requirement, people: TenantPeople) -> bool:
    """Whether a word is of one of those whom a requirement names, by themselves or by their delegate."""
    person = people.name_of(vote.by)
    if _is_asked(hold.reviewers, asked_roles(hold), vote.by, vote.roles, people):
        return _is_asked(one.reviewers, one.roles, vote.by, vote.roles, people)
    for handed in reversed(hold.delegations[: vote.delegations]):
        if people.meant_by(handed.to) == person:
            person = people.name_of(handed.by)
            if _is_asked(one.reviewers, one.roles, handed.by, handed.roles, people):
                return True
    return False


def _is_asked(
    reviewers: tuple[str, ...], asked: tuple[str, ...], by: str, had: tuple[str, ...], people: TenantPeople
) -> bool:
    """Whether an account is named, or has one of the roles that are asked: then, and now where that can be seen."""
    if people.name_of(by) in map(people.meant_by, reviewers):
        return True
    roles = people.roles_of(by)
    counting = set(asked) & set(had)
    return bool(counting if roles is None else counting & set(roles))


def word_of(hold: Hold, actor: Actor, people: TenantPeople) -> Vote:
    """The word that an actor would give now."""
    return Vote(actor.subject, actor.roles, people.principal_of(actor.subject), len(hold.delegations))


def has_spoken(hold: Hold, actor: Actor, people: TenantPeople) -> bool:
    """Whether one of the hold's words is the actor's own, by any of their accounts that may still speak."""
    return people.name_of(actor.subject) in people.names_of(
        vote.by for vote in hold.votes if not people.is_disabled(vote.by)
    )


def is_spoken_for(hold: Hold, actor: Actor, people: TenantPeople) -> bool:
    """Whether the actor's approval is a voice that the hold has already: their delegate's, or their delegator's."""
    voices = {voice_of(hold, vote, people) for vote in counting(hold, people)}
    return voice_of(hold, word_of(hold, actor, people), people) in voices


def voice_of(hold: Hold, vote: Vote, people: TenantPeople) -> str:
    """Whose voice a word is: its person's, or that of who handed the hold on to one who may not decide otherwise."""
    person = people.name_of(vote.by)
    if _is_named(hold, person, people) or set(asked_roles(hold)) & set(vote.roles):
        return person
    for handed in reversed(hold.delegations[: vote.delegations]):
        if people.meant_by(handed.to) == person:
            person = people.name_of(handed.by)
    return person


def edited_by(state: Execution, call: Call, people: TenantPeople) -> frozenset[str]:
    """Whose voices the edits of a call were: also of who had handed a hold on to its editor."""
    return frozenset(
        voice_of(hold, vote, people)
        for hold in state.holds.values()
        if hold.call_id == call.call_id and hold.delegations
        for vote in hold.votes
        if vote.by in call.requesters
    )


def _still_counts(hold: Hold, vote: Vote, people: TenantPeople) -> bool:
    now = people.principal_of(vote.by)
    if people.is_disabled(vote.by) or (vote.person and vote.person != now):
        return False
    roles, asked = people.roles_of(vote.by), set(asked_roles(hold))
    by_role = bool(asked & set(vote.roles)) and not _is_named(hold, people.name_of(vote.by), people)
    return roles is None or not by_role or bool(asked & set(roles))


def _is_named(hold: Hold, person: str, people: TenantPeople) -> bool:
    return person in map(people.meant_by, hold.reviewers)
