"""A use of a standing rule comes back to its call: with it the call is released, without it a person is asked."""

from schemas.commands import SettleReservation
from schemas.events.rules import ReservationSettled
from schemas.refusals import Refusal
from services.domain.context import Context
from services.domain.execution.deadlines import is_reserving
from services.domain.execution.evolve import evolve
from services.domain.execution.handler import Handlers
from services.domain.execution.verdicts import judged_events
from services.domain.refusals import Events, refuse
from services.domain.state import Call, Execution


def settle(state: Execution, command: SettleReservation, ctx: Context) -> Events:
    """SettleReservation: the answer on a use. The call is judged again, with what is in force now."""
    call = state.calls.get(command.call_id)
    if ctx.actor.roles != ("system",):
        return refuse(
            ctx, command, Refusal.NOT_AUTHORISED, "only a decider settles a reservation", command.call_id
        )
    asked = call.reservation if call else None
    if call is None or asked is None or asked.reservation_id != command.reservation_id:
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such reservation", command.call_id)
    if not is_reserving(call):
        return refuse(ctx, command, Refusal.DUPLICATE, "the call does not wait for it any more", call.call_id)
    return settled_events(state, call, command.granted, command.detail, ctx)


def settled_events(state: Execution, call: Call, granted: bool, detail: str, ctx: Context) -> Events:
    """The end of a wait for a use, and what becomes of the call; in a pause that follows on the resume."""
    asked = call.reservation
    if asked is None:
        raise ValueError(f"the call {call.call_id} asked for no use of a rule")
    settled = ReservationSettled(
        call_id=call.call_id,
        revision=call.revision,
        reservation_id=asked.reservation_id,
        rule_id=asked.rule_id,
        granted=granted,
        detail=detail,
    )
    after = evolve(state, settled, ctx.now_ms)
    if after.lifecycle == "paused":
        return [settled]
    return [settled, *judged_events(after, after.calls[call.call_id], ctx)]


HANDLERS: Handlers = {
    SettleReservation: settle,
}
