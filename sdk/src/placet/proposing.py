"""The proposal of a call, before and after which the client notes what may be sensitive in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.models import ToolCall


async def proposed(
    channel: Channel, execution_id: str, body: Mapping[str, Any], wait_s: float | None = None
) -> ToolCall:
    """Propose a call, and note whether its arguments are sensitive; errors as of any request."""
    # Until an answer shows the arguments as they are recorded, each of them may be sensitive.
    channel.exposed.doubt(str(body["tool"]))
    call = await channel.one(ToolCall, asks.propose(execution_id, body, wait_s))
    channel.exposed.settle(call.tool, call.arguments)
    return call
