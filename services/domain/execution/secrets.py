"""Sealed values: handed over once, to the requester, and erased. The decider never sees the values.

The values are in the gateway's vault. The log has their commitments and these facts: the attempt to which they were
delivered, until when it can ask again, and that they were erased. For a call, `GrantConsumed` is the delivery.
"""

from immutables import Map
from msgspec.structs import replace

from schemas import commands as k
from schemas.events import holds as h
from schemas.ids import ID_RULE, is_client_id
from schemas.limits import SECRETS_LEASE_MS
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.authority.authority import acts_for_agent
from services.domain.context import Context
from services.domain.execution.folding import Folds
from services.domain.execution.handler import Handlers
from services.domain.execution.opening import hold_id_of_request
from services.domain.refusals import Events, refuse
from services.domain.state import Execution, Handover, Hold

Problem = tuple[Refusal, str]

ERASED = "its sensitive values were erased"


def take(state: Execution, command: k.TakeSecrets, ctx: Context) -> Events:
    """TakeSecrets: one attempt gets the answer to its question, and can ask again for a short while."""
    hold = state.holds.get(hold_id_of_request(state, command.request_id))
    if hold is None or not acts_for_agent(ctx.actor, state.agent):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such request", command.request_id)
    if ctx.actor.agent is None:
        detail = "the variables are delivered only to the agent that requested them, not to people"
        return refuse(ctx, command, Refusal.NOT_AUTHORISED, detail, command.request_id)
    problem = _taking_problem(handover(state, request_id=command.request_id), hold, command, ctx)
    if problem is not None:
        return refuse(ctx, command, *problem, command.request_id)
    return [
        h.SecretsDelivered(
            request_id=command.request_id,
            attempt_id=command.attempt_id,
            until_ms=ctx.now_ms + SECRETS_LEASE_MS,
            by=ctx.actor.subject,
        )
    ]


def erase(state: Execution, command: k.EraseSecrets, ctx: Context) -> Events:
    """EraseSecrets: nobody gets the values of a call or request any more. Also possible after the execution's end."""
    if (problem := _erasing_problem(command, ctx)) is not None:
        return refuse(ctx, command, *problem, command.call_id or command.request_id)
    known = (
        command.call_id in state.calls
        if command.call_id
        else hold_id_of_request(state, command.request_id) in state.holds
    )
    if not known:
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such call or request")
    if handover(state, command.call_id, command.request_id).erased:
        return refuse(
            ctx, command, Refusal.DUPLICATE, "erased already", command.call_id or command.request_id
        )
    return [_erased(command, ctx)]


def erase_forgotten(command: k.EraseSecrets, ctx: Context) -> Events:
    """EraseSecrets for an execution of which only the id is kept: the named call or request need not have existed."""
    if (problem := _erasing_problem(command, ctx)) is not None:
        return refuse(ctx, command, *problem, command.call_id or command.request_id)
    return [_erased(command, ctx)]


def handover(state: Execution, call_id: str = "", request_id: str = "") -> Handover:
    """The recorded delivery and erasure of the sealed values of a call or request."""
    return state.handovers.get(_name(call_id, request_id), Handover())


def _taking_problem(known: Handover, hold: Hold, command: k.TakeSecrets, ctx: Context) -> Problem | None:
    if hold.kind != "env_var":
        return Refusal.INVALID, "only the answer to an env_var request is sensitive: read the request itself"
    if known.erased:
        return Refusal.EXPIRED, ERASED
    if not known.attempt_id:
        answered = hold.status == "resolved"
        return None if answered else (Refusal.NOT_RELEASED, "it has not been answered yet")
    if (known.attempt_id, known.by) != (command.attempt_id, ctx.actor.subject):
        return Refusal.ALREADY_CONSUMED, "they were delivered to another attempt"
    if ctx.now_ms >= known.until_ms:
        return Refusal.EXPIRED, "they were delivered, and the time in which to ask again is over"
    return Refusal.DUPLICATE, "they were delivered to this attempt"


def _erasing_problem(command: k.EraseSecrets, ctx: Context) -> Problem | None:
    if not ctx.actor.has("operator"):
        return Refusal.NOT_AUTHORISED, "erasing needs the role operator"
    if bool(command.call_id) == bool(command.request_id):
        return Refusal.INVALID, "name a call or a request"
    if not is_client_id(command.call_id or command.request_id):
        return Refusal.INVALID, f"the id {ID_RULE}"
    return None


def _erased(command: k.EraseSecrets, ctx: Context) -> Message:
    return h.SecretsErased(
        call_id=command.call_id,
        request_id=command.request_id,
        reason=command.reason,
        by=ctx.actor.subject,
    )


def _name(call_id: str, request_id: str) -> str:
    return f"call:{call_id}" if call_id else f"request:{request_id}"


def _with(state: Execution, name: str, known: Handover) -> Execution:
    handovers: Map[str, Handover] = state.handovers
    return replace(state, handovers=handovers.set(name, known))


def _delivered(state: Execution, event: h.SecretsDelivered, at_ms: int) -> Execution:
    earlier = handover(state, request_id=event.request_id)
    return _with(
        state,
        _name("", event.request_id),
        replace(earlier, attempt_id=event.attempt_id, until_ms=event.until_ms, by=event.by),
    )


def _folded_erasure(state: Execution, event: h.SecretsErased, at_ms: int) -> Execution:
    earlier = handover(state, event.call_id, event.request_id)
    return _with(state, _name(event.call_id, event.request_id), replace(earlier, erased=True))


HANDLERS: Handlers = {
    k.TakeSecrets: take,
    k.EraseSecrets: erase,
}
FOLDS: Folds = {
    h.SecretsDelivered: _delivered,
    h.SecretsErased: _folded_erasure,
}
