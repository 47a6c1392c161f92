"""What a planted call is told to be, once its hold has ended: until then no answer of the gateway says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placet.errors import NotFound

if TYPE_CHECKING:
    from placet.models import Hold
    from placet.sync import Placet


def planted_call(placet: Placet, hold: Hold) -> str:
    """What is told of a hold's call if it was planted; empty for any other, and while people are asked."""
    if not hold.call_id or hold.status in ("open", ""):
        return ""
    try:
        call = placet.call(hold.execution_id, hold.call_id)
    except NotFound:
        return ""
    return planted_told(call.raw.get("probe"))


def planted_told(probe: Any) -> str:
    """Who planted a call, what is bad about it, and who answered what; empty if it was not planted."""
    if not isinstance(probe, Mapping):
        return ""
    answers = ", ".join(f"{one['by']}: {one['decision']}" for one in probe["answers"]) or "nobody answered"
    return (
        f"by {probe['planted_by']}, and never runs; {probe['result']} ({answers}): {probe['note']}"
        f"{places_told(probe['wrong'])}"
    )


def places_told(wrong: Any) -> str:
    """The places in the arguments that are wrong, in brackets; empty if none are named."""
    return f" (at {', '.join(wrong)})" if wrong else ""
