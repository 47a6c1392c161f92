"""A verdict that comes late, because the decider hangs, to an agent whose worker waits for nobody."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from placet import AsyncPlacet, AsyncTurn, StillHeld
from tests.integration.frozen import frozen
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker]


PATIENCE_S = 120.0


async def test_turn_goes_on_with_the_call_that_was_released_for_it_meanwhile(site: Site) -> None:
    """Another worker, as of another process, waits for a turn that is given back: it could not run the call."""
    begun, proposes, left = asyncio.Event(), asyncio.Event(), asyncio.Event()
    effects: list[str] = []

    async def agent(turn: AsyncTurn) -> str:
        @turn.run.gated(tool="read_file")
        async def read_file(path: str) -> str:
            effects.append(path)
            return path

        begun.set()
        await proposes.wait()
        try:
            return str(await read_file(path=turn.turn_id))
        except StillHeld:
            left.set()
            raise

    message_id = f"late-{uuid.uuid4().hex[:8]}"
    async with (
        AsyncPlacet(site.url, token=site.agent_token, agent="bot") as client,
        AsyncPlacet(site.url, token=site.agent_token, agent="bot") as other,
        asyncio.timeout(PATIENCE_S),
    ):
        serving = [asyncio.create_task(client.serve({"bot": agent}, wait_s=0))]
        events = []
        try:
            stream = client.conversations.chat("read it", message_id=message_id, agent="bot")
            following = asyncio.create_task(anext(stream))
            await begun.wait()
            serving.append(asyncio.create_task(other.serve({"bot": agent}, wait_s=0)))
            with frozen(site, "decider"):
                proposes.set()
                await left.wait()
            events = [await following, *[event async for event in stream]]
        finally:
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
    assert events[-1].type == "complete", events[-1]
    assert effects == [message_id]
