"""The reviewer of a lane: it knows which calls the user's tasks need, and may err by a given share of its words."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ops.demo.reviewer import Key, holds
from ops.demo.suites import Call
from ops.evaluation.varying import FREE, by_seed
from placet import AlreadyDecided, AsyncPlacet, Expired, Hold, Refused
from placet.canonical import canonical
from placet.cli.decide import check_digest

FEEDBACK = "The user's task does not need this call with these arguments."
ERRORS = {"perfect": 0.0, "erring": 0.05}
MONTH_S = 30 * 24 * 60 * 60


@dataclass
class Judgement:
    """What is right about each hold, and what this reviewer says.

    It judges a hold by its execution and its arguments, not by the agent's steps. The answer for the same hold and
    digest never changes.

    Attributes:
        errors: the share of words that are the opposite of what is right, from 0 to 1.
        seed: of the errors: the same calls are misjudged in each arm.
        decided: how many holds were decided in each round, by decision.
    """

    errors: float
    seed: int
    decided: dict[int, Counter[str]] = field(default_factory=dict)
    _left: dict[str, Counter[Key]] = field(default_factory=dict)
    _rounds: dict[str, int] = field(default_factory=dict)
    _said: dict[tuple[str, str], bool] = field(default_factory=dict)

    def expect(self, execution_id: str, number: int, calls: Sequence[Call]) -> None:
        """An execution of round `number` begins, whose task needs these calls."""
        self._left[execution_id] = Counter(_key(call.tool, call.arguments) for call in calls)
        self._rounds[execution_id] = number

    def knows(self, execution_id: str) -> bool:
        """True if the execution is of this lane."""
        return execution_id in self._left

    def approves(self, hold: Hold) -> bool:
        """The reviewer's word on a hold."""
        place = hold.hold_id, hold.digest
        if place not in self._said:
            left, key = self._left[hold.execution_id], _key(hold.tool, hold.arguments or {})
            is_needed = left[key] > 0
            left[key] -= is_needed
            errs = by_seed(self.seed, hold.execution_id, str(key)).random() < self.errors
            self._said[place] = is_needed != errs
        return self._said[place]

    def count(self, hold: Hold, decision: str) -> None:
        """The reviewer has decided a hold."""
        self.decided.setdefault(self._rounds[hold.execution_id], Counter())[decision] += 1


def _key(tool: str, arguments: object) -> Key:
    return tool, canonical(arguments)


async def review(placet: AsyncPlacet, judgement: Judgement, *, remembers: bool) -> None:
    """Decide every hold of a lane as it opens, until cancelled."""
    async with asyncio.TaskGroup() as deciding:
        async for opened, hold in holds(placet):
            if opened and judgement.knows(hold.execution_id):
                deciding.create_task(_decide(placet, hold, judgement, remembers=remembers))


async def _decide(placet: AsyncPlacet, hold: Hold, judgement: Judgement, *, remembers: bool) -> None:
    check_digest(hold, "")
    try:
        if judgement.approves(hold):
            await _approve(placet, hold, remembers=remembers)
            judgement.count(hold, "approve")
        else:
            await placet.holds.decide(hold.hold_id, "reject", digest=hold.digest, feedback=FEEDBACK)
            judgement.count(hold, "reject")
    except (AlreadyDecided, Expired):
        return  # somebody else decided first, or the hold expired


async def _approve(placet: AsyncPlacet, hold: Hold, *, remembers: bool) -> None:
    view = await placet.holds.view(hold.hold_id)
    seen: dict[str, Any] = {"digest": hold.digest, "view_digest": view.view_digest}
    if remembers:
        free = {name: {"any": True} for name in hold.arguments or {} if name in FREE}
        asked = {"arguments": free, "expires_seconds": MONTH_S, "uses": None}
        try:
            await placet.holds.decide(hold.hold_id, "approve", scope="rule", remember=asked, **seen)
        except Refused as refused:
            if refused.code != "invalid":
                raise
        else:
            return
    # Its policy or its risk does not let it be remembered.
    await placet.holds.decide(hold.hold_id, "approve", **seen)
