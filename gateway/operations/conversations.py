"""Conversations: a message is sent to an agent, a worker takes its turn on, and says what becomes of it."""

from __future__ import annotations

from gateway.actions.turns import VERBS, ClaimTurn, SendMessage
from gateway.asking.asker import name_of
from gateway.bodies import read_body
from gateway.identity.authentication import check_acts, check_role, permitted_scope
from gateway.live.outcome import Outcome
from gateway.live.reader import Subject
from gateway.live.turns import TurnKey
from gateway.operations.executions import agent_of, made_id
from gateway.operations.plan import Gate, Given, Plan, Reply
from gateway.problems import Problem
from projections.folds.turns import turn_json
from projections.tables.conversations import TurnRow
from schemas import conversation_commands as k
from schemas.actor import Actor
from schemas.ids import split_execution_key
from schemas.limits import TURN_LEASE_MS
from schemas.refusals import Refusal
from schemas.token import Claims

_VERBS = {verb.name: verb for verb in VERBS}
# If a claim is refused for one of these reasons, another worker was first, or the turn is over: the next is tried.
PASSED_BY = frozenset(
    {
        Refusal.NOT_FOUND,
        Refusal.EXECUTION_CLOSED,
        Refusal.NOT_OPEN,
        Refusal.ALREADY_CONSUMED,
        Refusal.NOT_RELEASED,
    }
)


def subject_of(actor: Actor, execution_id: str, turn_id: str) -> Subject:
    """The subject of a turn in the actor's project."""
    return Subject("turn", actor.tenant, actor.project, execution_id, turn_id)


def check_converses(actor: Actor, agent: str) -> None:
    """Refuse an actor that may not send an agent messages: it acts for the agent, or may steer its executions.

    Raises:
        Problem: 403 not_authorised.
    """
    if actor.agent is None:
        check_role(actor, "reviewer", "operator")
    else:
        check_acts(actor, agent)


def plan_message(
    gate: Gate, claims: Claims, execution_id: str, given: Given, key: str | None, route: str = ""
) -> Plan:
    """Send the agent of a conversation a message; the answer is the turn that it opens.

    `route` is by default the conversation's own: with an idempotency key, the message is named by both.

    Raises:
        Missing: the execution is not cached.
        Problem: the token does not permit it, or the body is invalid.
    """
    actor = claims.actor
    check_converses(actor, agent_of(gate, actor, execution_id))
    body = read_body(SendMessage, given())
    route = route or f"/v1/executions/{execution_id}/messages"
    turn_id = body.message_id or made_id(gate, actor, route, key)
    name = name_of(actor, route, key, (execution_id, turn_id) if body.message_id else None)
    user = permitted_scope(claims, "user", body.user)
    sender = actor.model_copy(update={"user": user}) if user else actor
    ask = gate.execution_ask(execution_id, k.SendMessage(turn_id=turn_id, text=body.text), sender, name)

    def render(row: TurnRow, outcome: Outcome) -> Reply:
        check_converses(actor, row["agent"])
        return gate.json(turn_json(row), 201 if outcome.refused is None and not outcome.old else 200)

    return Plan(ask, subject_of(actor, execution_id, turn_id), render)


def plan_claim(gate: Gate, actor: Actor, place: TurnKey, body: ClaimTurn) -> Plan:
    """Take on one turn. The answer is the permission to work on it, until its lease ends."""
    _, _, execution_id = split_execution_key(place.key)
    command = k.ClaimTurn(turn_id=place.turn_id, attempt_id=body.attempt_id)
    parts = (execution_id, place.turn_id, body.attempt_id, actor.subject)
    name = name_of(actor, "turns/claim", None, parts)
    # As with a consumption, the answer to an earlier request of the same attempt is no proof of the present state.
    ask = gate.execution_ask(execution_id, command, actor, name, anew=True)

    def render(row: TurnRow, outcome: Outcome) -> Reply:
        _check_has(row, body.attempt_id, gate.live.time.now_ms())
        return gate.json({"turn": turn_json(row), "lease_seconds": TURN_LEASE_MS / 1000})

    return Plan(ask, subject_of(actor, execution_id, place.turn_id), render)


def plan_turn_change(
    gate: Gate, claims: Claims, execution_id: str, turn_id: str, verb: str, given: Given, key: str | None
) -> Plan:
    """Plan one of the verbs for a turn.

    Raises:
        Missing: the execution is not cached.
        Problem: the token does not permit it, or the body is invalid.
    """
    actor = claims.actor
    check_acts(actor, agent_of(gate, actor, execution_id))
    command = _VERBS[verb].asked(turn_id, given)
    route = f"/v1/executions/{execution_id}/turns/{turn_id}/{verb}"
    ask = gate.execution_ask(execution_id, command, actor, name_of(actor, route, key))
    return Plan(ask, subject_of(actor, execution_id, turn_id), lambda row, _: gate.json(turn_json(row)))


def check_unspent(gate: Gate, place: TurnKey, attempt_id: str) -> None:
    """Refuse a claim of a turn under the id of the attempt that has given it back, or was lost.

    Raises:
        Problem: 409 already_consumed.
    """
    row = gate.live.cache.turns.get(place)
    if row is not None and row["attempt_id"] == attempt_id:
        detail = "this attempt has given the turn back, or was lost: take it on under a new id"
        raise Problem(Refusal.ALREADY_CONSUMED, detail)


def _check_has(row: TurnRow, attempt_id: str, now_ms: int) -> None:
    if row["status"] != "claimed" or row["attempt_id"] != attempt_id:
        raise Problem(Refusal.ALREADY_CONSUMED, "another attempt works on the turn")
    if row["lease_until_ms"] is None or now_ms >= row["lease_until_ms"]:
        raise Problem(Refusal.NOT_RELEASED, "the lease of this attempt has ended")
