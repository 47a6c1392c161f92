"""Pushed decisions, kept until they are requested."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placet.models import PENDING
from placet.transport.port import CallKey

MOST_BOXES = 10_000


@dataclass
class _Box:
    body: Mapping[str, Any] | None = None
    awaited: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Mailbox:
    """One box per call, opened before the call is proposed, so that no push comes too early.

    Boxes that are not read are dropped, oldest first; a wait without a push falls back to reading the call.
    """

    def __init__(self) -> None:
        self._boxes: OrderedDict[CallKey, _Box] = OrderedDict()

    def open(self, key: CallKey) -> None:
        """Keep pushes for a call from now on."""
        self._boxes.setdefault(key, _Box())
        while len(self._boxes) > MOST_BOXES:
            self._boxes.popitem(last=False)

    def close(self, key: CallKey) -> None:
        """Forget a call unless a task waits for it."""
        box = self._boxes.get(key)
        if box is not None and not box.awaited:
            del self._boxes[key]

    def deliver(self, key: CallKey, body: Mapping[str, Any]) -> None:
        """Store a push if it has a decision."""
        box = self._boxes.get(key)
        if box is not None and body.get("status") not in PENDING:
            box.body = body
            box.changed.set()

    def rouse(self) -> None:
        """Wake every waiting task, so that it reads its call, because pushes may have been lost."""
        for box in self._boxes.values():
            box.changed.set()

    def awaited(self) -> Sequence[CallKey]:
        """The calls for which a task waits now."""
        return [key for key, box in self._boxes.items() if box.awaited]

    async def take(self, key: CallKey, wait_s: float) -> Mapping[str, Any] | None:
        """The pushed call, at once if it has come already.

        Returns:
            None after `wait_s`, or if the wait was woken without a push.
        """
        self.open(key)
        box = self._boxes[key]
        box.awaited += 1
        try:
            await asyncio.wait_for(box.changed.wait(), wait_s)
        except asyncio.TimeoutError:
            return None
        finally:
            box.awaited -= 1
        box.changed.clear()
        body, box.body = box.body, None
        return body
