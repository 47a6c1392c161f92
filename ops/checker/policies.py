"""The checker's own reading of published policies: the adaptive block of the version in force, and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from ops.checker.facts import Fact
from ops.checker.people import TENANTS


class Floor(msgspec.Struct, frozen=True):
    """The least trust by level of risk; `ask`: none is enough."""

    low: float | Literal["ask"] = 0.5
    medium: float | Literal["ask"] = 0.5
    high: float | Literal["ask"] = "ask"


class Adaptive(msgspec.Struct, frozen=True):
    """What is compared of an adaptive block; docs/trust.md has its defaults."""

    sample_rate: float = 0.05
    floor: Floor = Floor()


@dataclass(slots=True)
class PoliciesSeen:
    """By tenant, project and name the versions of a policy: offset, version (0 once retired), and adaptive block."""

    _versions: dict[tuple[str, str, str], list[tuple[int, int, Adaptive | None]]] = field(
        default_factory=dict
    )

    def read(self, fact: Fact) -> None:
        """Take a PolicyPublished or a PolicyRetired."""
        body = fact.body
        version, block = 0, None
        if fact.type == "PolicyPublished":
            version, block = body.version, _adaptive_of(body.document)
        found = self._versions.setdefault((fact.tenant, body.project, body.name), [])
        found.append((fact.offset, version, block))

    def adaptive(self, tenant: str, label: str, through_offset: int) -> Adaptive | None:
        """The adaptive block of a policy, by its label in verdicts: `name@version`, with `project/` if it has one.

        None if it has none, or if this version is not in force by the definitions up to an offset.
        """
        place, at, version = label.rpartition("@")
        project, slash, name = place.rpartition("/")
        versions = self._versions.get((tenant, project if slash else TENANTS, name), [])
        newest = [one for one in versions if one[0] <= through_offset][-1:]
        return next((block for _, number, block in newest if at and str(number) == version), None)


def _adaptive_of(document: str) -> Adaptive | None:
    try:
        block = json.loads(document).get("adaptive")
        return None if block is None else msgspec.convert(block, Adaptive)
    except (ValueError, AttributeError, RecursionError, msgspec.ValidationError):
        # No decider can read it either, and then trust releases nothing by it.
        return None
