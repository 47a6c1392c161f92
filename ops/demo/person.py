"""You as the reviewer: each hold is shown in this terminal and waits for your decision, here or from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ops.demo.reviewer import GroundTruth, holds
from ops.demo.terminal import Lines
from placet import AlreadyDecided, AsyncPlacet, Expired, Hold, Refused
from placet.canonical import MalformedJson, parse_strict
from placet.cli import safe
from placet.cli.decide import check_digest
from placet.cli.session import console
from placet.cli.viewing import check_view, print_view

CHOICES = "[a]pprove  [e]dit  [r]eject  [l]ater > "


class Desk:
    """The holds that wait for the person at this terminal, oldest first."""

    def __init__(self, placet: AsyncPlacet, truth: GroundTruth, lines: Lines) -> None:
        self._placet = placet
        self._truth = truth
        self._lines = lines
        self._waiting: dict[str, Hold] = {}
        self._changed = asyncio.Condition()

    async def follow(self) -> None:
        """Update the waiting holds from the event stream: others can decide them too."""
        async for opened, hold in holds(self._placet):
            if not self._truth.knows(hold.execution_id):
                continue
            async with self._changed:
                if opened:
                    self._waiting[hold.hold_id] = hold
                else:
                    self._waiting.pop(hold.hold_id, None)
                self._changed.notify_all()

    async def serve(self) -> None:
        """Show one hold after the other and do what is typed, until the input ends."""
        while True:
            hold = await self._first()
            await self._show(hold)
            line = await self._answer(hold)
            if line is None:
                return
            await self._carry_out(hold, line)

    async def _first(self) -> Hold:
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting)
            return next(iter(self._waiting.values()))

    async def _show(self, hold: Hold) -> None:
        run = await self._placet.executions.get(hold.execution_id)
        _say(f"\nThe user asked: {safe.escaped(str(run.request))}")
        view = await self._placet.holds.view(hold.hold_id)
        check_view(hold, view)
        print_view(hold, view)
        _ask(CHOICES)

    async def _answer(self, hold: Hold) -> str | None:
        """The line typed for a hold; "" if it was decided elsewhere meanwhile, None at the end of input."""
        typed = asyncio.create_task(self._lines.next())
        gone = asyncio.create_task(self._gone(hold))
        try:
            await asyncio.wait({typed, gone}, return_when=asyncio.FIRST_COMPLETED)
            if typed.done():
                return typed.result()
        finally:
            typed.cancel()
            gone.cancel()
        _say(f"\n{hold.tool} was decided elsewhere, or expired.")
        return ""

    async def _gone(self, hold: Hold) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting.get(hold.hold_id) is not hold)

    async def _carry_out(self, hold: Hold, line: str) -> None:
        actions: dict[str, Callable[[Hold, str], Awaitable[None]]] = {
            "a": self._approve,
            "e": self._edit,
            "r": self._reject,
            "l": self._later,
        }
        action = actions.get(line[:1].lower())
        if action is None:
            return
        try:
            await action(hold, line)
        except (AlreadyDecided, Expired) as late:
            _say(f"Too late: {late}")
        except (Refused, MalformedJson) as refused:
            _say(f"Refused: {refused}")

    async def _approve(self, hold: Hold, line: str) -> None:
        check_digest(hold, "")
        await self._decide(hold, "approve")

    async def _reject(self, hold: Hold, line: str) -> None:
        _ask("Why, for the agent > ")
        await self._decide(hold, "reject", feedback=await self._lines.next() or "")

    async def _edit(self, hold: Hold, line: str) -> None:
        _ask("The arguments, as one line of JSON > ")
        edited = parse_strict(await self._lines.next() or "")
        if not isinstance(edited, dict):
            raise MalformedJson("arguments are a JSON object")
        await self._decide(hold, "edit", edited_arguments=edited)

    async def _later(self, hold: Hold, line: str) -> None:
        async with self._changed:
            if self._waiting.pop(hold.hold_id, None):
                self._waiting[hold.hold_id] = hold

    async def _decide(self, hold: Hold, decision: str, **more: Any) -> None:
        view = await self._placet.holds.view(hold.hold_id)
        if hold.must_read and decision != "reject":
            _say(view.text)
            _ask(f"{decision} everything shown above? [y/N] > ")
            if not (await self._lines.next() or "").lower().startswith("y"):
                return
        recorded = await self._placet.holds.decide(
            hold.hold_id, decision, digest=hold.digest, view_digest=view.view_digest, **more
        )
        _say(f"{decision}: {recorded.status}")
        async with self._changed:
            self._waiting.pop(hold.hold_id, None)


async def decide_here(placet: AsyncPlacet, truth: GroundTruth) -> None:
    """Let the person at this terminal decide, until cancelled; others can decide from elsewhere."""
    async with Lines() as lines, asyncio.TaskGroup() as group:
        desk = Desk(placet, truth, lines)
        group.create_task(desk.follow())
        await desk.serve()
        _say("The input of this terminal has ended: decide with placet approve, edit, reject.")


def _say(text: str) -> None:
    console().print(safe.text(text, lines=True))


def _ask(text: str) -> None:
    console().print(text, end="")
