"""Facts about standing rules: their making, their status, and each use.

A rule itself is a definition (`placet.definitions`). An aggregate of its own on `placet.executions` counts its uses.
A call's request for a use is a fact of the call's execution.
"""

from typing import Literal

from schemas.message import Long, Message


class RuleMade(Message):
    """A standing rule (canonical JSON) was made of a decision; `proposed` waits for a second person."""

    rule_id: str
    status: Literal["proposed", "active", "refused"]
    reason: str
    document: str
    by: str


class RuleActivated(Message):
    """A standing rule may be used from here on."""

    rule_id: str
    reason: str
    by: str


class RuleSuspended(Message):
    """A standing rule rests until a person activates it. `evidence` is JSON of the contrary decision."""

    rule_id: str
    reason: str
    evidence: str
    by: str


class RuleRevoked(Message):
    """A standing rule has ended."""

    rule_id: str
    reason: str
    by: str


class RuleAsked(Message):
    """A decision asks for a standing rule (canonical JSON)."""

    rule_id: str
    decision_id: str
    document: str
    by: str


class RuleContradicted(Message):
    """A decision went against a standing rule that covers the call; without a decision, its grant was revoked."""

    rule_id: str
    call_id: str
    hold_id: str
    decision_id: str
    by: str


class ReservationAsked(Message):
    """The call waits for one use of a standing rule; after the deadline a person is asked."""

    call_id: str
    revision: Long
    digest: str
    rule_id: str
    reservation_id: str
    deadline_at_ms: Long


class ReservationSettled(Message):
    """The answer on a use has come, or its time was over."""

    call_id: str
    revision: Long
    reservation_id: str
    rule_id: str
    granted: bool
    detail: str


class RuleUseReserved(Message):
    """One use of a standing rule belongs to one revision of one call; `number` counts from 1."""

    rule_id: str
    reservation_id: str
    execution_id: str
    call_id: str
    revision: Long
    digest: str
    number: Long


class RuleUseRefused(Message):
    """A standing rule cannot be used for this call."""

    rule_id: str
    reservation_id: str
    execution_id: str
    call_id: str
    revision: Long
    detail: str


# Events of the rule itself (on the definitions), of an execution, and of a rule's uses (under a key of their own).
RULE_EVENTS: tuple[type[Message], ...] = (RuleMade, RuleActivated, RuleSuspended, RuleRevoked)
RULE_ASKING_EVENTS: tuple[type[Message], ...] = (
    RuleAsked,
    RuleContradicted,
    ReservationAsked,
    ReservationSettled,
)
RULE_USE_EVENTS: tuple[type[Message], ...] = (RuleUseReserved, RuleUseRefused)
