"""What each of several rules asks for, where one hold must satisfy them all.

A hold names everybody who may decide it and how many people must approve; its requirements say beside that of whom
they must be. They travel as JSON text, in HoldOpened and in the views' rows.
"""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

# Whom a hold without roles and reviewers of its own asks.
ANY_REVIEWER = ("reviewer", "operator", "admin")


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


_DECODER = msgspec.json.Decoder(tuple[Requirement, ...])


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
