"""The voices of a hold, the people for whom its votes count: each person once, with all accounts and delegates.

The vote of a delegate counts as the voice of the delegator; otherwise one person who can decide could turn anybody
into the second person. It counts as long as the delegator's own vote would.
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
    may_still_vote,
    still_hand_on,
)
from schemas.principals import TenantPeople
from schemas.requirement import Requirement, roles_asked
from services.domain.state import Call, Execution, Hold, Vote

REVIEWERS = ("reviewer", "operator")


def approves(hold: Hold, requesters: Requesters, people: TenantPeople, *more: Vote) -> bool:
    """True if the votes that still count, with `more`, are by enough people, and by those whom the hold asks.

    If several rules ask, each rule's own people must be among them, in the number that the rule asks for. A vote no
    longer counts if its account was disabled, no longer belongs to its person, or has lost the role by which it
    voted, or if it is now known as the account of a requester or of a person whom the rule excludes. A delegate's
    vote no longer counts if one of these applies to the delegator. An account without a published principal cannot
    lose a role.

    Args:
        hold: the hold.
        requesters: the people whose own request it is, as far as is known now.
        people: the tenant's people.
        more: votes cast now, by people who can decide the hold.
    """
    votes = [*counting(hold, requesters, people), *more]
    return _voices_of(hold, votes, people) >= hold.quorum and all(
        _voices_of(hold, [vote for vote in votes if _meets(hold, vote, one, people)], people) >= one.quorum
        for one in hold.requirements
    )


def counting(hold: Hold, requesters: Requesters, people: TenantPeople) -> list[Vote]:
    """The votes on a hold that still count, the oldest first."""
    own = requesters() if hold.votes and hold.exclude_requester else frozenset()
    return [vote for vote in hold.votes if _still_counts(hold, lambda: own, vote, people)]


def _voices_of(hold: Hold, votes: list[Vote], people: TenantPeople) -> int:
    speaking = {people.name_of(vote.by) for vote in votes}
    # The smaller number: a principal published since then can make two of them one person.
    return min(len(speaking), len({voice_of(hold, vote, people) for vote in votes}))


def _meets(hold: Hold, vote: Vote, one: Requirement, people: TenantPeople) -> bool:
    """True if a vote is by one of the people whom a requirement names, or by their delegate."""
    wanted = Asked(one.roles, one.reviewers)
    spoken = [(handed.by, handed.roles) for handed in _hands(hold, vote, people)] or [(vote.by, vote.roles)]
    return any(_is_of(wanted, by, had, people) for by, had in spoken)


def _is_of(wanted: Asked, by: str, had: tuple[str, ...], people: TenantPeople) -> bool:
    """True if an account is named, or had one of the wanted roles then and, if it has a principal, has it now."""
    roles = people.roles_of(by)
    kept = had if roles is None else tuple(set(had) & set(roles))
    return could_decide(wanted, by, kept, people)


def vote_of(hold: Hold, actor: Actor, people: TenantPeople) -> Vote:
    """The vote that an actor would cast now."""
    return Vote(actor.subject, actor.roles, people.principal_of(actor.subject), len(hold.delegations))


def has_voted(hold: Hold, actor: Actor, people: TenantPeople) -> bool:
    """True if one of the hold's votes is the actor's own, by any of their accounts that is not disabled."""
    return people.name_of(actor.subject) in people.names_of(
        vote.by for vote in hold.votes if not people.is_disabled(vote.by)
    )


def is_represented(hold: Hold, requesters: Requesters, actor: Actor, people: TenantPeople) -> bool:
    """True if the actor's approval would repeat a voice that the hold already has: a delegate's or delegator's."""
    voices = {voice_of(hold, vote, people) for vote in counting(hold, requesters, people)}
    return voice_of(hold, vote_of(hold, actor, people), people) in voices


def voice_of(hold: Hold, vote: Vote, people: TenantPeople) -> str:
    """The person for whom a vote counts: the voter, or the delegator if the voter can decide only as a delegate."""
    hands = _hands(hold, vote, people)
    return people.name_of(hands[-1].by if hands else vote.by)


def edited_by(state: Execution, call: Call, people: TenantPeople) -> frozenset[str]:
    """The people behind the edits of a call: the editors, and everybody who passed the hold on to them."""
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
    """The people whom a hold asks, with its first delegations or all of them."""
    return Asked(
        hold.roles, hold.reviewers, hold.excluded, hold.exclude_requester, hold.delegations[:delegations]
    )


def _hands(hold: Hold, vote: Vote, people: TenantPeople, *, bars: bool = False) -> tuple[Delegation, ...]:
    return hands_to(asked_by(hold, vote.delegations), vote.by, vote.roles, people, bars=bars)


def _hands_then(hold: Hold, vote: Vote) -> Iterator[str]:
    """The delegators between hold and voter, by the names of that time: a later principal undoes no delegation."""
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
    if not may_still_vote(asked, requesters, vote.by, vote.person, people):
        return False
    if hands := _hands(hold, vote, people):
        return still_hand_on(asked, requesters, hands, people)
    return keeps_role(asked, vote.by, vote.roles, people)
