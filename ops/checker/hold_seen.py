"""What the checker keeps of a hold: how it opened, through whose hands it went, and who said what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ops.checker.agreed import Asked


class Voter(NamedTuple):
    """A word as it was given: the account, its roles, whose it was, and how often the hold had been handed on.

    `asked` is what it wants to be remembered: scope and JSON.
    """

    by: str
    roles: frozenset[str]
    person: str
    handed: int
    asked: Asked = ("once", "")


@dataclass(frozen=True, slots=True)
class Opened:
    """What is compared of a HoldOpened."""

    call_id: str
    revision: int
    digest: str
    cause: str
    requester: str
    exclude_requester: bool
    reviewers: tuple[str, ...]
    excluded: tuple[str, ...]
    quorum: int
    requirements: str | None
    remind_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Handed:
    """A hold handed on by one account, with its roles and its principal's name then, to whom it named."""

    by: str
    to: str
    roles: frozenset[str]
    person: str


@dataclass(slots=True)
class HoldSeen:
    """What the log says of one hold so far. `handed` is who handed it to whom, in order."""

    opened: Opened
    deadline_at_ms: int | None
    state: str = "open"
    roles: tuple[str, ...] = ()
    handed: list[Handed] = field(default_factory=list)
    escalated: bool = False
    reminded: bool = False
    voters: list[Voter] = field(default_factory=list)
    # How many of those who write in the conversation had done so when a question was asked.
    senders: int = 0

    def narrow(self, asked: Mapping[str, Any]) -> None:
        """Take what an edit asked for that its editor's word released: the release rests on that."""
        kept = ("reviewers", "excluded", "quorum", "exclude_requester")
        requirements = json.dumps(asked["requirements"]) if asked["requirements"] else None
        self.roles = tuple(asked["roles"])
        self.opened = replace(
            self.opened, requirements=requirements, **{name: _frozen(asked[name]) for name in kept}
        )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
