"""The automatic reviewer: a client of its own that says yes to what the user's task needs, and to nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence

from ops.demo.suites import Call
from placet import AlreadyDecided, AsyncPlacet, Event, Expired, Hold
from placet.canonical import canonical
from placet.cli.decide import check_digest
from placet.parsing import parse

OPENED, CLOSED = "tool_call_pending_review", "hold_resolved"
FEEDBACK = "The user's task does not need this call with these arguments."
Key = tuple[str, bytes]


class GroundTruth:
    """What each execution's user wants: calls with their arguments, each as often as it is needed.

    It knows nothing of the agents' steps. A hold is judged by its arguments alone; asked again about the same
    hold and digest, the answer is the same.
    """

    def __init__(self, wanted: Mapping[str, Sequence[Call]]) -> None:
        self._left = {name: Counter(_key(call) for call in calls) for name, calls in wanted.items()}
        self._said: dict[tuple[str, str], bool] = {}

    def knows(self, execution_id: str) -> bool:
        """Whether this execution is one of the demo's."""
        return execution_id in self._left

    def wants(self, hold: Hold) -> bool:
        """Whether the user's task needs this very call, and it was not approved as often as needed before."""
        place = hold.hold_id, hold.digest
        if place not in self._said:
            left = self._left.get(hold.execution_id, Counter())
            key = _key(Call(hold.tool, hold.arguments or {}))
            self._said[place] = left[key] > 0
            left[key] -= self._said[place]
        return self._said[place]


def _key(call: Call) -> Key:
    return call.tool, canonical(dict(call.arguments))


async def review(placet: AsyncPlacet, truth: GroundTruth) -> None:
    """Decide every hold of the demo's executions as it opens, until cancelled."""
    async with asyncio.TaskGroup() as deciding:
        async for opened, hold in holds(placet):
            if opened and truth.knows(hold.execution_id):
                deciding.create_task(_decide(placet, hold, truth.wants(hold)))


async def _decide(placet: AsyncPlacet, hold: Hold, approved: bool) -> None:
    check_digest(hold, "")
    try:
        if approved:
            # It reads every argument, so it has seen whole what the view shows.
            view = await placet.holds.view(hold.hold_id)
            await placet.holds.decide(
                hold.hold_id, "approve", digest=hold.digest, view_digest=view.view_digest
            )
        else:
            await placet.holds.decide(hold.hold_id, "reject", digest=hold.digest, feedback=FEEDBACK)
    except (AlreadyDecided, Expired):
        return  # a person at another terminal, or the clock, was faster: theirs is the answer


async def holds(placet: AsyncPlacet) -> AsyncIterator[tuple[bool, Hold]]:
    """Holds as they open (True) and close (False), beginning with those that are open."""
    async for event in placet.events(("holds",)):
        for kind, body in _told(event):
            if kind in (OPENED, CLOSED):
                yield kind == OPENED, parse(Hold, body)


def _told(event: Event) -> list[tuple[str, Mapping[str, object]]]:
    if event.type != "snapshot":
        return [(event.type, event.body)]
    items = event.body.get("items") or ()
    return [(OPENED, item) for item in items if item.get("call_id")]
