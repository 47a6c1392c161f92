"""The checker's own reading of published policies: of the version in force the adaptive block, and whom rules ask.

Written apart from `services.domain.policy` on purpose: a mistake there must not be repeated here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

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


class Asks(msgspec.Struct, frozen=True):
    """What is read of a rule's hold: whom it asks. docs/policy.md has its defaults."""

    kind: str = "permission"
    roles: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    quorum: int = 1
    exclude_requester: bool = False
    escalate: dict[str, Any] | None = None
    adaptive: bool = True


class Rule(msgspec.Struct, frozen=True):
    """What is read of a rule."""

    id: str
    then: str
    hold: Asks | None = None


class Policy(NamedTuple):
    """One version: its adaptive block, and by the id of each rule why trust never answers it; empty where it may."""

    adaptive: Adaptive | None
    rules: dict[str, str]


@dataclass(slots=True)
class PoliciesSeen:
    """By tenant, project and name the versions of a policy: offset, version (0 once retired), and what it says."""

    _versions: dict[tuple[str, str, str], list[tuple[int, int, Policy | None]]] = field(default_factory=dict)

    def read(self, fact: Fact) -> None:
        """Take a PolicyPublished or a PolicyRetired."""
        body = fact.body
        version, policy = 0, None
        if fact.type == "PolicyPublished":
            version, policy = body.version, _policy_of(body.document)
        found = self._versions.setdefault((fact.tenant, body.project, body.name), [])
        found.append((fact.offset, version, policy))

    def in_force(self, tenant: str, label: str, through_offset: int) -> Policy | None:
        """A policy by its label in verdicts: `name@version`, with `project/` if it has one.

        None if it cannot be read, or if this version is not in force by the definitions up to an offset.
        """
        place, at, version = label.rpartition("@")
        project, slash, name = place.rpartition("/")
        versions = self._versions.get((tenant, project if slash else TENANTS, name), [])
        newest = [one for one in versions if one[0] <= through_offset][-1:]
        return next((policy for _, number, policy in newest if at and str(number) == version), None)


def _policy_of(document: str) -> Policy | None:
    try:
        value = json.loads(document)
        block = value.get("adaptive")
        adaptive = None if block is None else msgspec.convert(block, Adaptive)
        return Policy(adaptive, _rules_of(msgspec.convert(value.get("rules", []), list[Rule])))
    except (ValueError, AttributeError, RecursionError, msgspec.ValidationError):
        # No decider can read it either, and then trust releases nothing by it.
        return None


def _rules_of(rules: list[Rule]) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule in rules:
        # Of rules with one id, the first that always asks counts.
        found[rule.id] = found.get(rule.id) or _never(rule)
    return found


def _never(rule: Rule) -> str:
    """Why trust never answers a rule, by docs/trust.md; empty where it may."""
    asks = rule.hold or Asks()
    if rule.then != "hold":
        return "by a rule that holds nothing"
    if not asks.adaptive:
        return "by a rule that always asks"
    named = asks.roles or asks.reviewers or asks.excluded or asks.exclude_requester
    if named or asks.quorum != 1 or asks.escalate is not None or asks.kind != "permission":
        return "by a rule that asks certain people"
    return ""
