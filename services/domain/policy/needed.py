"""Whom a hold needs where several rules ask: what each of them asks for must be met.

Who may decide are all whom any rule names, and as many people must approve as the rule that asks for most. Beside
that, each rule that names people is a requirement of its own: a word of another rule's reviewer does not meet it.
A rule that names nobody asks for a number of people, whoever they are.
"""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from schemas.requirement import ANY_REVIEWER, Requirement


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
    parts = _merged(part for one, rules in every for part in requirements_of(one, rules))
    quorum = max(one.quorum for one, _ in every)
    if not parts:
        return Needed((), (), quorum)
    if len(parts) == 1 and parts[0].quorum >= quorum:
        return Needed(parts[0].roles, parts[0].reviewers, quorum)
    roles = [role for one, _ in every for role in _may_speak(one)]
    reviewers = [name for one, _ in every for name in one.reviewers]
    return Needed(_distinct(roles), _distinct(reviewers), quorum, parts)


def requirements_of(one: Asks, rules: tuple[str, ...] = ()) -> tuple[Requirement, ...]:
    """What is asked for as requirements; none where nobody is named."""
    if one.requirements or not (one.roles or one.reviewers):
        return one.requirements
    return (Requirement(rules, one.roles, one.reviewers, one.quorum, one.escalate_roles),)


def _may_speak(one: Asks) -> tuple[str, ...]:
    # One of any reviewers is also one of those whom another rule names; a second one is not.
    if one.roles or one.reviewers or one.quorum == 1:
        return one.roles
    return ANY_REVIEWER


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
