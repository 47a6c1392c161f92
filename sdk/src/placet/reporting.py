"""The report of what a released call did: the last step of a gated call, which `placet.gate` begins."""

from __future__ import annotations

from typing import Any

from placet.channel import Channel
from placet.errors import PlacetError, Refused, ResultNotReported
from placet.gate import MOST_ERROR_CHARS, Cleared, report
from placet.recording import unrecorded


async def report_success(
    channel: Channel, cleared: Cleared, output: Any, told: Any, duration_ms: int
) -> None:
    """Report what the function returned (step 7).

    Args:
        channel: to the gateway.
        cleared: the call.
        output: what its caller gets.
        told: what is recorded of it, JSON.
        duration_ms: how long it ran.

    Raises:
        ResultNotReported: it ran, and the log does not know.
    """
    body = {"outcome": "succeeded", "output": told, "duration_ms": duration_ms}
    try:
        try:
            await report(channel, cleared, body)
        except Refused as refused:
            if refused.code not in ("too_large", "malformed", "invalid"):
                raise
            await report(channel, cleared, {**body, "output": unrecorded(f"refused as {refused.code}")})
    except PlacetError as error:
        raise ResultNotReported(cleared.call, output, "") from error


async def report_failure(channel: Channel, cleared: Cleared, told: str, duration_ms: int) -> None:
    """Report what the function raised (step 7), as `told`.

    Raises:
        ResultNotReported: it ran, and the log does not know.
    """
    text = told[:MOST_ERROR_CHARS]
    try:
        await report(channel, cleared, {"outcome": "failed", "error": text, "duration_ms": duration_ms})
    except PlacetError as error:
        raise ResultNotReported(cleared.call, None, text) from error
