"""The requirements of several rules that one hold must satisfy together.

A hold names everybody who can decide it and how many people must approve. Its requirements also say how many of them
must be of which group. They are JSON text in HoldOpened and in the views' rows.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

import msgspec

# The roles that a hold without its own roles and reviewers asks.
ANY_REVIEWER = ("reviewer", "operator", "admin")


class NamesPeople(Protocol):
    """Anything that names the people who can decide."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The people named by role."""

    @property
    def reviewers(self) -> tuple[str, ...]:
        """The people named one by one."""


def roles_asked(one: NamesPeople) -> tuple[str, ...]:
    """The roles whose members can decide; none if only named people can."""
    return one.roles if one.roles or one.reviewers else ANY_REVIEWER


def widened(one: NamesPeople, escalate_roles: Iterable[str]) -> tuple[str, ...]:
    """The roles that an escalated hold asks: never fewer than before; any reviewer can still decide if any could."""
    return tuple(dict.fromkeys((*roles_asked(one), *escalate_roles)))


class Requirement(msgspec.Struct, frozen=True):
    """`quorum` different people must approve who have one of the roles or are one of the reviewers.

    `rules` are the rules that require it (`policy@version/rule`). Once the hold has escalated, people with one of the
    `escalate_roles` count too.
    """

    rules: tuple[str, ...]
    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    quorum: int
    escalate_roles: tuple[str, ...] = ()


class AskedOfEdit(msgspec.Struct, frozen=True):
    """The authority that an edited call required, if its editor's own approval released it and no hold was opened."""

    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    excluded: tuple[str, ...]
    quorum: int
    exclude_requester: bool
    escalate_roles: tuple[str, ...]
    on_reject: str
    requirements: tuple[Requirement, ...] = ()


_DECODER = msgspec.json.Decoder(tuple[Requirement, ...])
_EDIT_DECODER = msgspec.json.Decoder(AskedOfEdit)


def asked_of_edit_to_text(asked: AskedOfEdit) -> str:
    """The JSON of what an edited call required."""
    return msgspec.json.encode(asked).decode()


def asked_of_edit_from_text(text: str) -> AskedOfEdit:
    """What an edited call required.

    Raises:
        msgspec.MsgspecError: the text was not made by `asked_of_edit_to_text`.
    """
    return _EDIT_DECODER.decode(text)


def requirements_to_text(requirements: Iterable[Requirement]) -> str | None:
    """The JSON of requirements; None if there are none."""
    found = tuple(requirements)
    return msgspec.json.encode(found).decode() if found else None


@lru_cache(maxsize=1024)
def requirements_from_text(text: str | None) -> tuple[Requirement, ...]:
    """The requirements of a JSON text.

    Raises:
        msgspec.MsgspecError: the text was not made by `requirements_to_text`.
    """
    return () if text is None else _DECODER.decode(text)


def escalated(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """The requirements once their hold has escalated: each also asks the roles that its own rules escalate to."""
    return tuple(
        msgspec.structs.replace(
            one, roles=tuple(dict.fromkeys((*one.roles, *one.escalate_roles))), escalate_roles=()
        )
        for one in requirements
    )
