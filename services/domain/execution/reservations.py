"""The answer on a use of a standing rule: with a use the call is released, without one a person is asked."""

from msgspec.structs import replace

from schemas.commands import SettleReservation
from schemas.events.rules import ReservationSettled
from schemas.refusals import Refusal
from services.domain.context import Context
from services.domain.execution.deadlines import is_reserving
from services.domain.execution.folding import Folds, with_call
from services.domain.execution.handler import Handlers
from services.domain.execution.verdicts import judged_events
from services.domain.refusals import Events, refuse
from services.domain.state import Call, Execution


def settle(state: Execution, command: SettleReservation, ctx: Context) -> Events:
    """SettleReservation: the answer on a use. The call is judged again, by the definitions in force now."""
    call = state.calls.get(command.call_id)
    if ctx.actor.roles != ("system",):
        return refuse(
            ctx, command, Refusal.NOT_AUTHORISED, "only a decider settles a reservation", command.call_id
        )
    asked = call.reservation if call else None
    if call is None or asked is None or asked.reservation_id != command.reservation_id:
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such reservation", command.call_id)
    if not is_reserving(call):
        return refuse(ctx, command, Refusal.DUPLICATE, "the call no longer waits for it", call.call_id)
    return settled_events(state, call, command.granted, command.detail, ctx)


def settled_events(state: Execution, call: Call, granted: bool, detail: str, ctx: Context) -> Events:
    """The end of a wait for a use, and the call's verdict; during a pause the verdict follows on the resume."""
    asked = call.reservation
    if asked is None:
        raise ValueError(f"the call {call.call_id} did not request a use of a rule")
    settled = ReservationSettled(
        call_id=call.call_id,
        revision=call.revision,
        reservation_id=asked.reservation_id,
        rule_id=asked.rule_id,
        granted=granted,
        detail=detail,
    )
    after = _reserved(state, settled, ctx.now_ms)
    if after.lifecycle == "paused":
        return [settled]
    return [settled, *judged_events(after, after.calls[call.call_id], ctx)]


def _reserved(state: Execution, event: ReservationSettled, at_ms: int) -> Execution:
    call = state.calls[event.call_id]
    if call.reservation is None or call.reservation.reservation_id != event.reservation_id:
        return state
    if state.lifecycle == "paused":
        # Judged when the run resumes, like a call proposed during the pause.
        state = replace(state, parked=(*state.parked, call.call_id))
    settled = replace(call.reservation, settled=True, granted=event.granted)
    return with_call(state, replace(call, reservation=settled))


HANDLERS: Handlers = {
    SettleReservation: settle,
}
FOLDS: Folds = {
    ReservationSettled: _reserved,
}
