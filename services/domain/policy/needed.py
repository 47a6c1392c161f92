"""Whom a hold needs where several rules ask: what each of them asks for must be met.

Who may decide are all whom any rule names, and as many people must approve as the rule that asks for most. Beside
that, each rule is a requirement of its own: a word of another rule's reviewer does not meet it. A rule that names
nobody asks any reviewer, which whom another rule names need not be.
"""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from schemas.requirement import ANY_REVIEWER, Requirement, roles_asked


class Asks(Protocol):
    """What has authority in it: the terms of a hold, or a hold."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Who may decide, by role."""

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Who may decide, by name."""

    @property
    def quorum(self) -> int:
        """How many people must approve."""

    @property
    def escalate_roles(self) -> tuple[str, ...]:
        """Who is asked later."""

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Of whom they must be, where several rules ask."""


class Needed(Struct, frozen=True):
    """Who may decide, how many must approve, and of whom they must be."""

    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    quorum: int
    requirements: tuple[Requirement, ...] = ()


def all_of(asked: Iterable[tuple[Asks, tuple[str, ...]]]) -> Needed:
    """What meets all that is asked.

    Args:
        asked: what is asked for, and the rules that ask for it.
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
    """What is asked for as requirements: of any reviewer where nobody is named."""
    if one.requirements:
        return one.requirements
    return (Requirement(rules, roles_asked(one), one.reviewers, one.quorum, one.escalate_roles),)


def meets(was: Requirement, one: Requirement) -> bool:
    """Whether who met the one requirement has met the other: no fewer people, and none whom it would not ask."""
    may = {*one.roles, *one.escalate_roles}
    return was.quorum >= one.quorum and set(was.roles) <= may and set(was.reviewers) <= set(one.reviewers)


def _without_implied(parts: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """The requirements but for that of any reviewer where another one's people are such."""
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
    """The requirements with those that name the same people made one: the larger number of them."""
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
