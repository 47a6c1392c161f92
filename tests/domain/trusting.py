"""Worlds in which an agent is trusted by given facts."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from schemas.adaptive import AdaptiveOutcome, outcome_from_text
from schemas.call_history import CallHistory
from schemas.trust import ClassFact, ClassPart
from schemas.trust_score import Placed
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import combine
from tests.domain.steps import started
from tests.domain.world import (
    RULES,
    START_MS,
    TOOLS,
    World,
    published,
    the,
)

SEED = "00" * 16
# What `facts` approve: any amount that these tests propose.
AMOUNTS = CallHistory(numbers=(("amount", 0.0, 1_000.0),))
ALWAYS: dict[str, Any] = {"sample_rate": 0, "floor": {"low": 0, "high": 0}}


def facts(
    approvals: int = 60, *more: ClassFact, at_ms: int = START_MS, history: CallHistory = AMOUNTS
) -> tuple[Placed, ...]:
    approved = (
        ClassFact(
            offset=number,
            at_ms=at_ms,
            kind="approval",
            by=("rita",),
            requester="bot",
            values=history.values,
            numbers=history.numbers,
        )
        for number in range(approvals)
    )
    return tuple(Placed(0, one) for one in (*approved, *more))


# Classes of the payments that these tests propose, in which what is approved is known together: to people who were
# known, and to others.
PAYMENTS = (
    "count=1e0&risk=writes",
    "amount=1e0&token.commitment=text&token.handle=text&risk=novel:token.commitment+token.handle,writes",
    *(f"amount=1e{size}&risk=writes" for size in range(3)),
    *(
        f"amount=1e0&{name}=text&risk={novel}writes"
        for name in ("recipient", "to", "token")
        for novel in ("", f"novel:{name},")
    ),
)


class Known:
    """Trust in every class of calls by the same facts, with the classes that were asked for."""

    def __init__(self, found: tuple[Placed, ...] | None, through: int = 10**6) -> None:
        self.found = found
        self.through = through
        self.classes: list[str] = []

    def __call__(self, *names: str) -> KnownTrust | None:
        self.classes.append(names[-1])
        if self.found is None:
            return None
        payments = tuple(part for name in PAYMENTS for part in self._parts((*names[:-1], name)))
        approvals = sum(one.fact.kind == "approval" for one in self.found)
        counts = {**combine(()), "approvals": approvals}
        return KnownTrust(counts, self._parts(names), {0: self.through}, payments)

    def _parts(self, names: tuple[str, ...]) -> tuple[ClassPart, ...]:
        return tuple(_part(names, *group) for group in groupby(self.found or (), lambda one: one.partition))


def _part(names: tuple[str, ...], partition: int, found: Iterable[Placed]) -> ClassPart:
    facts = tuple(one.fact for one in found)
    tenant, project, agent, tool, trust_class = names
    return ClassPart(
        tenant=tenant,
        project=project,
        agent=agent,
        tool=tool,
        trust_class=trust_class,
        partition=partition,
        facts=facts,
        begins_at=0,
        counted=len(facts),
        through_offset=facts[-1].offset,
        record_id="r",
        term=1,
        topic_id=f"log of {len(facts)}",
    )


def world_of(
    trust: Known, adaptive: dict[str, Any] | None = None, rules: list[dict[str, Any]] | None = None
) -> World:
    empty = Definitions(policies=PolicySet())
    blocks: dict[str, Any] = {} if adaptive is None else {"adaptive": adaptive}
    definitions = published(empty, rules or RULES, TOOLS, **blocks)
    return started(definitions=definitions, trust=trust, seed=SEED)


def outcome(bodies: list[Any]) -> AdaptiveOutcome:
    return outcome_from_text(the(bodies, "PolicyVerdictIssued").adaptive)
