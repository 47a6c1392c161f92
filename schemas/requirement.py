"""What each of several rules asks for, where one hold must satisfy them all.

A hold names everybody who may decide it and how many people must approve; its requirements say beside that of whom
they must be. They travel as JSON text, in HoldOpened and in the views' rows.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

import msgspec

# Whom a hold without roles and reviewers of its own asks.
ANY_REVIEWER = ("reviewer", "operator", "admin")


class NamesPeople(Protocol):
    """What says who may decide."""

    @property
    def roles(self) -> tuple[str, ...]:
        """By role."""

    @property
    def reviewers(self) -> tuple[str, ...]:
        """By name."""


def roles_asked(one: NamesPeople) -> tuple[str, ...]:
    """The roles by which somebody may decide; none where only those may who are named."""
    return one.roles if one.roles or one.reviewers else ANY_REVIEWER


def widened(one: NamesPeople, escalate_roles: Iterable[str]) -> tuple[str, ...]:
    """Whom an escalated hold asks: more people, never fewer; one that any reviewer could decide stays so."""
    return tuple(dict.fromkeys((*roles_asked(one), *escalate_roles)))


class Requirement(msgspec.Struct, frozen=True):
    """So many different people must approve who have one of the roles or are one of the reviewers.

    `rules` are those that ask for it (`policy@version/rule`). Once the hold has escalated, whoever has one of the
    `escalate_roles` counts too.
    """

    rules: tuple[str, ...]
    roles: tuple[str, ...]
    reviewers: tuple[str, ...]
    quorum: int
    escalate_roles: tuple[str, ...] = ()


class AskedOfEdit(msgspec.Struct, frozen=True):
    """What an edited call asked for where its editor's own word released it, so that no hold was opened for it."""

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
    """The JSON of what an edit asked for."""
    return msgspec.json.encode(asked).decode()


def asked_of_edit_from_text(text: str) -> AskedOfEdit:
    """What an edit asked for.

    Raises:
        msgspec.MsgspecError: it is none of `asked_of_edit_to_text`.
    """
    return _EDIT_DECODER.decode(text)


def requirements_to_text(requirements: Iterable[Requirement]) -> str | None:
    """The JSON of requirements; None where there are none."""
    found = tuple(requirements)
    return msgspec.json.encode(found).decode() if found else None


@lru_cache(maxsize=1024)
def requirements_from_text(text: str | None) -> tuple[Requirement, ...]:
    """The requirements of a JSON text.

    Raises:
        msgspec.MsgspecError: it is none of `requirements_to_text`.
    """
    return () if text is None else _DECODER.decode(text)


def escalated(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """The requirements once their hold has escalated: each asks also those whom its own rules escalate to."""
    return tuple(
        msgspec.structs.replace(
            one, roles=tuple(dict.fromkeys((*one.roles, *one.escalate_roles))), escalate_roles=()
        )
        for one in requirements
    )
