"""Who stands behind what is remembered: everybody whose approval it was made of, and who activated it.

A memory takes the place of asking people, so it never stands on fewer than the policy asks, and only as long as each
of them could still be asked.
"""

from schemas.principals import TenantPeople
from schemas.requirement import roles_asked
from schemas.standing_rule import Maker, StandingRuleDocument


def made_by(document: StandingRuleDocument) -> tuple[str, ...]:
    """Who made it, and whose voices those were."""
    makers = document.all_makers
    return tuple(dict.fromkeys(name for maker in makers for name in (maker.by, maker.voice) if name))


def still_stands(
    document: StandingRuleDocument, activators: tuple[str, ...], people: TenantPeople, quorum: int
) -> bool:
    """Whether all who stand behind it still may, and are as many different people as are asked for.

    Nobody among them may be one whom the hold that it was made on excluded, or whose own request that was.

    Args:
        document: what is remembered.
        activators: who activated it; none for what a run remembers.
        people: of the tenant.
        quorum: how many people are asked for.
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
    """How many different people stand behind it: a delegate and who they spoke for are one."""
    makers, others = document.all_makers, people.names_of(activators)
    voices = {people.meant_by(maker.voice) if maker.voice else people.name_of(maker.by) for maker in makers}
    return min(len(people.names_of(maker.by for maker in makers) | others), len(voices | others))


def is_behind(
    document: StandingRuleDocument, activators: tuple[str, ...], asking: frozenset[str], people: TenantPeople
) -> bool:
    """Whether one of some people is among those who stand behind it, or was spoken for."""
    return bool(asking & _names((*made_by(document), *activators), people))


def _barred(document: StandingRuleDocument, people: TenantPeople) -> frozenset[str]:
    """Who, by what is known now, could not have decided the hold that it was made on."""
    barred = frozenset(map(people.meant_by, document.terms.excluded))
    if not document.terms.exclude_requester:
        return barred
    # Those who were spoken for stand among the requesters, so that they are no second people for the rule.
    voices = {maker.voice for maker in document.all_makers}
    return barred | _names(tuple(name for name in document.requesters if name not in voices), people)


def _names(given: tuple[str, ...], people: TenantPeople) -> frozenset[str]:
    # A voice is a person's name already, and was an account's where nobody had published a principal then.
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
    # Named by the rule, or recorded before the roles were.
    return not document.terms.reviewers or _could_decide(document, maker.by, people)


def _could_decide(document: StandingRuleDocument, by: str, people: TenantPeople) -> bool:
    """Whether an account could decide today what the hold asked. One that nobody published can lose no role."""
    if people.is_disabled(by):
        return False
    terms, roles = document.terms, people.roles_of(by)
    if roles is None or people.is_among(by, terms.reviewers):
        return True
    return bool(set(roles_asked(terms)) & set(roles))
