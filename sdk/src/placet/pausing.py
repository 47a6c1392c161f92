"""A paused run: its released calls are consumed once a person has resumed it."""

from __future__ import annotations

import asyncio

from placet import asks
from placet.channel import Channel
from placet.errors import StillHeld
from placet.models import Execution, ToolCall

LOOK_AGAIN_S = 1.0


async def wait_for_resume(channel: Channel, call: ToolCall, timeout_s: float | None) -> bool:
    """Wait until the run of a call is not paused.

    The run is read for that: a consumption that is refused again would be one more refusal in the log.

    Returns:
        False if the run was not paused; then this took a second, because the gateway that answered can be behind
        the one that refused.

    Raises:
        StillHeld: after `timeout_s` the run is still paused.
        Unreachable, Unavailable, NotFound: the run could not be read.
    """
    clock = asyncio.get_running_loop().time
    give_up_at = None if timeout_s is None else clock() + timeout_s
    was_paused = False
    while await channel.patiently(lambda: _is_paused(channel, call)):
        was_paused = True
        if give_up_at is not None and clock() >= give_up_at:
            raise StillHeld(call, timeout_s or 0.0, "its execution is paused")
        await asyncio.sleep(LOOK_AGAIN_S)
    if not was_paused:
        await asyncio.sleep(LOOK_AGAIN_S)
    return was_paused


async def _is_paused(channel: Channel, call: ToolCall) -> bool:
    return (await channel.one(Execution, asks.get_execution(call.execution_id))).state == "paused"
