"""The actions on a hold other than the decision: each verb with its body, command, route, message and event.

A new verb is declared here and nowhere else in the gateway: the routes, the WebSocket messages, the changes that
readers are notified of, and the published documents are made from `VERBS`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.actions.verb import ClientMessage, NotifiedEvent, Ref, Verb
from gateway.bodies import INTEGRAL, Body, ClientId, Nothing
from gateway.problems import Problem
from schemas import commands as k
from schemas.actor import subject_fault
from schemas.command_rules import limit_of, range_of
from schemas.events import holds as h
from schemas.limits import DEADLINE_MAX_S
from schemas.message import Message
from schemas.refusals import Refusal

_CLAIM = range_of(k.ClaimHold, "seconds")
_EXTENSION = range_of(k.ExtendHold, "seconds")


class ClaimHold(Body):
    """Claim a hold for a number of seconds, so that other reviewers see who is working on it."""

    seconds: Annotated[int, Field(ge=_CLAIM.least, le=_CLAIM.most), INTEGRAL] = 300


class DelegateHold(Body):
    """Delegate a hold to another subject."""

    to: Annotated[str, Field(min_length=1, max_length=limit_of(k.DelegateHold, "to"))]


class ExtendHold(Body):
    """Extend a hold's deadline."""

    seconds: Annotated[
        int,
        Field(
            ge=_EXTENSION.least,
            le=_EXTENSION.most,
            description="How much later than now set. However often it is extended, the deadline is then at most "
            f"{DEADLINE_MAX_S} seconds from now.",
        ),
        INTEGRAL,
    ]


class Claim(ClientMessage):
    """Claim a hold, so that other reviewers see who is working on it."""

    type: Literal["claim"]
    ref: Ref | None = None
    hold_id: ClientId
    seconds: int | None = None


def _delegate(hold_id: str, body: DelegateHold) -> Message:
    if (fault := subject_fault(body.to)) is not None:
        # A hold delegated to a name that merely looks like another's would wait for a person who does not exist.
        raise Problem(Refusal.INVALID, f"to: {fault}: no token can have such a subject")
    return k.DelegateHold(hold_id=hold_id, to=body.to)


# In the order of their routes.
VERBS: tuple[Verb[Any], ...] = (
    Verb(
        name="claim",
        operation="claimHold",
        says="Claim a hold for a while, so that other reviewers see who is working on it.",
        body=ClaimHold,
        command=lambda hold_id, body: k.ClaimHold(hold_id=hold_id, seconds=body.seconds),
        message=Claim,
        notified=NotifiedEvent(h.HoldClaimed, "claimed", 1),
    ),
    Verb(
        name="release",
        operation="releaseHold",
        says="End the claim on a hold.",
        body=Nothing,
        command=lambda hold_id, _: k.ReleaseHold(hold_id=hold_id),
        notified=NotifiedEvent(h.HoldUnclaimed, "released", 2),
    ),
    Verb(
        name="escalate",
        operation="escalateHold",
        says="Escalate the hold now to the roles of its rule's escalation.",
        body=Nothing,
        command=lambda hold_id, _: k.EscalateHold(hold_id=hold_id),
        notified=NotifiedEvent(h.HoldEscalated, "escalated", 5),
    ),
    Verb(
        name="delegate",
        operation="delegateHold",
        says="Delegate a hold to another subject.",
        body=DelegateHold,
        command=_delegate,
        notified=NotifiedEvent(h.HoldDelegated, "delegated", 3),
    ),
    Verb(
        name="extend",
        operation="extendHold",
        says="Extend a hold's deadline.",
        body=ExtendHold,
        command=lambda hold_id, body: k.ExtendHold(hold_id=hold_id, seconds=body.seconds),
        notified=NotifiedEvent(h.HoldExtended, "extended", 4),
    ),
)
# The changes of a hold that stays open, as readers are notified of them, the highest rank last.
_NOTIFIED = (
    *(verb.notified for verb in VERBS if verb.notified is not None),
    NotifiedEvent(h.HoldReminded, "reminded", 0),
    NotifiedEvent(h.HoldExpired, "expired", 6),
    NotifiedEvent(h.DecisionRecorded, "vote", 7),
)
CHANGES: dict[type[Message], str] = {
    event.event: event.word for event in sorted(_NOTIFIED, key=lambda event: event.rank)
}
