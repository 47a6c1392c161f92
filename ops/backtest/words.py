"""What people said of calls, from the events that follow their verdicts."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from ops.backtest.found import Word
from schemas.commands import Decision
from schemas.events.calls import GrantRevoked, ImpactReported
from schemas.events.holds import DecisionRecorded
from schemas.message import Message
from schemas.trust_facts import fact_of_revocation

_WORD_OF: dict[Decision, Word] = {
    "approve": "approved",
    "edit": "edited",
    "reject": "rejected",
    "respond": "answered",
}


class Said(NamedTuple):
    """A person's word on one revision of a call."""

    call_id: str
    revision: int
    word: Word
    by: str
    feedback: str


def said_in(body: Message, doubts: Container[str]) -> Said | None:
    """What an event says of a call, or None.

    Args:
        body: the event.
        doubts: the holds that ask what became of a call. Any other decision counts, also in a run that was set aside.
    """
    if isinstance(body, DecisionRecorded):
        # A decision on a call in doubt is about what happened, not about whether it should have.
        if not body.resolves or not body.call_id or body.hold_id in doubts:
            return None
        return Said(body.call_id, body.revision, _WORD_OF[body.decision], body.by, body.feedback)
    if isinstance(body, GrantRevoked) and fact_of_revocation(body.reason) is not None:
        return Said(body.call_id, body.revision, "revoked", body.by, body.reason)
    if isinstance(body, ImpactReported):
        return Said(body.call_id, body.revision, "harmful", body.by, body.reason)
    return None
