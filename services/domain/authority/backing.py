"""The backers of a remembered decision: all whose approvals it consists of, and those who activated it.

A remembered decision replaces asking people. So it never has fewer backers than the policy asks for, and it applies
only as long as each of them could still be asked.
"""

from schemas.principals import TenantPeople
from schemas.requirement import roles_asked
from schemas.standing_rule import Maker, StandingRuleDocument


def made_by(document: StandingRuleDocument) -> tuple[str, ...]:
    """The accounts that made it, and the people for whom their votes counted."""
    makers = document.all_makers
    return tuple(dict.fromkeys(name for maker in makers for name in (maker.by, maker.voice) if name))


def still_stands(
    document: StandingRuleDocument, activators: tuple[str, ...], people: TenantPeople, quorum: int
) -> bool:
    """True if all backers can still decide, and are at least as many different people as the quorum.

    None of them may be a person whom the original hold excluded, or whose own request that hold was about.

    Args:
        document: the remembered decision.
        activators: the accounts that activated it; none for a decision that a run remembers.
        people: the tenant's people.
        quorum: the number of people that are needed.
    """
    if not all(_maker_still_may(document, maker, people) for maker in document.all_makers):
        return False
    if not all(_could_decide(document, by, people) for by in activators):
        return False
    if is_behind(document, activators, _barred(document, people), people):
        return False
    if document.four_eyes and not people.names_of(activators) - _names(made_by(document), people):
        return False
    return number_behind(document, activators, people) >= quorum


def number_behind(document: StandingRuleDocument, activators: tuple[str, ...], people: TenantPeople) -> int:
    """The number of different backers; a delegate and the person they voted for count as one."""
    makers, others = document.all_makers, people.names_of(activators)
    voices = {people.meant_by(maker.voice) if maker.voice else people.name_of(maker.by) for maker in makers}
    return min(len(people.names_of(maker.by for maker in makers) | others), len(voices | others))


def is_behind(
    document: StandingRuleDocument, activators: tuple[str, ...], asking: frozenset[str], people: TenantPeople
) -> bool:
    """True if one of the `asking` people is a backer, or one for whom a backer voted."""
    return bool(asking & _names((*made_by(document), *activators), people))


def _barred(document: StandingRuleDocument, people: TenantPeople) -> frozenset[str]:
    """The people who, according to today's principals, could not have decided the original hold."""
    barred = frozenset(map(people.meant_by, document.terms.excluded))
    if not document.terms.exclude_requester:
        return barred
    # A delegator is among the requesters only so that the rule does not count them as a second person.
    voices = {maker.voice for maker in document.all_makers}
    return barred | _names(tuple(name for name in document.requesters if name not in voices), people)


def _names(given: tuple[str, ...], people: TenantPeople) -> frozenset[str]:
    # A voice is already a person's name; it is an account's if no principal was published at that time.
    return people.names_of(given) | frozenset(map(people.meant_by, given))


def _maker_still_may(document: StandingRuleDocument, maker: Maker, people: TenantPeople) -> bool:
    if people.is_disabled(maker.by):
        return False
    if maker.voice:
        accounts = people.accounts_of(maker.voice) or (maker.voice,)
        return any(_could_decide(document, account, people) for account in accounts)
    roles = people.roles_of(maker.by)
    if roles is None:
        return True
    if maker.roles:
        return bool(set(maker.roles) & set(roles))
    # The rule named the maker, or the decision was recorded before roles were.
    return not document.terms.reviewers or _could_decide(document, maker.by, people)


def _could_decide(document: StandingRuleDocument, by: str, people: TenantPeople) -> bool:
    """True if an account could decide the hold's terms today. An account without a principal cannot lose a role."""
    if people.is_disabled(by):
        return False
    terms, roles = document.terms, people.roles_of(by)
    if roles is None or people.is_among(by, terms.reviewers):
        return True
    return bool(set(roles_asked(terms)) & set(roles))
