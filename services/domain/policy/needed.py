"""The people that a hold needs if several rules ask: each rule's requirement must be met.

Everybody whom any rule names can decide, and as many people must approve as the largest quorum. In addition, each
rule is a requirement of its own: the approval of another rule's reviewer does not meet it. A rule that names nobody
asks any reviewer, and the people whom another rule names need not be reviewers.
"""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from schemas.requirement import ANY_REVIEWER, Requirement, roles_asked


class Asks(Protocol):
    """Anything that asks for people: the terms of a hold, or a hold."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that can decide."""

    @property
    def reviewers(self) -> tuple[str, ...]:
        """The people who can decide, by name."""

    @property
    def quorum(self) -> int:
        """The number of people who must approve."""

    @property
    def escalate_roles(self) -> tuple[str, ...]:
        """The roles that an escalation asks."""

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements of each rule, if several ask."""


class Needed(Struct, frozen=True):
    """The people who can decide, the number who must approve, and the requirements that they must meet."""

    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    quorum: int
    requirements: tuple[Requirement, ...] = ()


def all_of(asked: Iterable[tuple[Asks, tuple[str, ...]]]) -> Needed:
    """The people that meet all requirements.

    Args:
        asked: the terms or holds, each with the rules that ask for it.
    """
    every = list(asked)
    quorum = max(one.quorum for one, _ in every)
    if not any(one.roles or one.reviewers for one, _ in every):
        return Needed((), (), quorum)
    parts = _without_implied(_merged(part for one, rules in every for part in requirements_of(one, rules)))
    if len(parts) == 1 and parts[0].quorum >= quorum:
        return Needed(parts[0].roles, parts[0].reviewers, quorum)
    roles = [role for one, _ in every for role in roles_asked(one)]
    reviewers = [name for one, _ in every for name in one.reviewers]
    return Needed(_distinct(roles), _distinct(reviewers), quorum, parts)


def requirements_of(one: Asks, rules: tuple[str, ...] = ()) -> tuple[Requirement, ...]:
    """The requirements of terms or a hold; any reviewer if nobody is named."""
    if one.requirements:
        return one.requirements
    return (Requirement(rules, roles_asked(one), one.reviewers, one.quorum, one.escalate_roles),)


def meets(was: Requirement, one: Requirement) -> bool:
    """True if the people who met `was` also meet `one`: at least as many, all among those whom it asks."""
    may = {*one.roles, *one.escalate_roles}
    return was.quorum >= one.quorum and set(was.roles) <= may and set(was.reviewers) <= set(one.reviewers)


def _without_implied(parts: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """The requirements without that of any reviewer, if another one's people are reviewers."""
    return tuple(
        part
        for part in parts
        if part.roles != ANY_REVIEWER
        or not any(_implies(other, part) for other in parts if other is not part)
    )


def _implies(other: Requirement, part: Requirement) -> bool:
    once_escalated = replace(other, roles=(*other.roles, *other.escalate_roles))
    return meets(once_escalated, part)


def _merged(parts: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """The requirements, with those that name the same people merged into one with the larger number."""
    merged: dict[tuple[frozenset[str], frozenset[str]], Requirement] = {}
    for part in parts:
        key = (frozenset(part.roles), frozenset(part.reviewers))
        same = merged.get(key)
        merged[key] = part if same is None else _both(same, part)
    return tuple(merged.values())


def _both(one: Requirement, other: Requirement) -> Requirement:
    return replace(
        one,
        rules=_distinct((*one.rules, *other.rules)),
        quorum=max(one.quorum, other.quorum),
        escalate_roles=tuple(role for role in one.escalate_roles if role in other.escalate_roles),
    )


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
