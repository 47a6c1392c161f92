"""The automatic reviewer: a separate client that approves the calls of the user's task, and rejects others."""

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
    """The calls that each execution's task needs: tools and arguments, each with the number of times.

    It does not use the agents' steps. A hold is judged by its arguments alone; the answer for the same hold and
    digest never changes.
    """

    def __init__(self, wanted: Mapping[str, Sequence[Call]]) -> None:
        self._left = {name: Counter(_key(call) for call in calls) for name, calls in wanted.items()}
        self._said: dict[tuple[str, str], bool] = {}

    def knows(self, execution_id: str) -> bool:
        """True if this execution is one of the demo's."""
        return execution_id in self._left

    def wants(self, hold: Hold) -> bool:
        """True if the user's task needs exactly this call and it was not yet approved as often as needed."""
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
            # It reads every argument, so it has seen everything that the view shows.
            view = await placet.holds.view(hold.hold_id)
            await placet.holds.decide(
                hold.hold_id, "approve", digest=hold.digest, view_digest=view.view_digest
            )
        else:
            await placet.holds.decide(hold.hold_id, "reject", digest=hold.digest, feedback=FEEDBACK)
    except (AlreadyDecided, Expired):
        return  # a person at another terminal decided first, or the hold expired


async def holds(placet: AsyncPlacet) -> AsyncIterator[tuple[bool, Hold]]:
    """Holds as they open (True) and close (False), beginning with the open ones."""
    async for event in placet.events(("holds",)):
        for kind, body in _told(event):
            if kind in (OPENED, CLOSED):
                yield kind == OPENED, parse(Hold, body)


def _told(event: Event) -> list[tuple[str, Mapping[str, object]]]:
    if event.type != "snapshot":
        return [(event.type, event.body)]
    items = event.body.get("items") or ()
    return [(OPENED, item) for item in items if item.get("call_id")]
