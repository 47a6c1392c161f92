"""Refusals: events like any other."""

from schemas.commands import DecideHold
from schemas.events.executions import CommandRefused
from schemas.events.holds import DecisionRefused
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.context import Context

Events = list[Message]


def refuse(ctx: Context, command: Message, code: Refusal, detail: str, subject_id: str = "") -> Events:
    """The one event of a refused command."""
    return [
        CommandRefused(
            code=code,
            command=type(command).__name__,
            subject_id=subject_id,
            detail=detail,
            by=ctx.actor.subject,
        )
    ]


def refuse_decision(
    ctx: Context, command: DecideHold, code: Refusal, detail: str, winning_decision_id: str = ""
) -> Events:
    """The one event of a refused decision, naming the decision that won."""
    return [
        DecisionRefused(
            hold_id=command.hold_id,
            decision=command.decision,
            digest=command.digest,
            code=code,
            detail=detail,
            winning_decision_id=winning_decision_id,
            by=ctx.actor.subject,
        )
    ]
