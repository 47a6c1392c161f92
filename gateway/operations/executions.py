"""Executions: opened, paused, resumed and ended."""

from __future__ import annotations

import uuid

from gateway import bodies
from gateway.asking.asker import CommandName, name_of
from gateway.bodies import read_body
from gateway.identity.doors import acts_for, check_acts, check_role, permitted_scope
from gateway.live.outcome import Outcome
from gateway.live.reader import Subject
from gateway.operations.plan import Gate, Given, Plan, Reply
from gateway.problems import Problem
from gateway.strictjson import canonical_text, within
from gateway.words.executions import VERBS
from projections.folds.executions import execution_json
from projections.folds.states import CLOSED
from projections.tables.executions import ExecutionRow
from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.ids import derived_id
from schemas.limits import REQUEST_MAX_BYTES
from schemas.message import Message
from schemas.refusals import Refusal
from schemas.token import Claims

OPENED = 201
_VERBS = {verb.name: verb for verb in VERBS}


def subject_of(actor: Actor, execution_id: str) -> Subject:
    """An execution of the actor's project."""
    return Subject("execution", actor.tenant, actor.project, execution_id, execution_id)


def plan_start(gate: Gate, claims: Claims, given: Given, key: str | None) -> Plan:
    """Open an execution.

    Args:
        gate: what is needed.
        claims: of who asks.
        given: the parsed body, `bodies.StartExecution`.
        key: its idempotency key.

    Raises:
        Problem: the body or what the token permits speaks against it.
    """
    body = read_body(bodies.StartExecution, given())
    actor = claims.actor
    agent = body.agent or actor.agent
    if agent is None:
        raise Problem(Refusal.INVALID, "name the agent: this token is nobody's in particular")
    check_acts(actor, agent)
    command = k.StartExecution(
        agent=agent,
        user=permitted_scope(claims, "user", body.user),
        workspace=permitted_scope(claims, "workspace", body.workspace),
        request=_request_text(body.request),
        context=canonical_text(body.context, "context"),
    )
    execution_id = body.execution_id or made_id(actor, "/v1/executions", key)
    name = name_of(actor, "/v1/executions", key, (execution_id,) if body.execution_id else None)
    plan = _plan(gate, actor, execution_id, command, name, OPENED)
    gate.live.note_start(plan.ask.key, agent)
    return plan


def plan_change(
    gate: Gate, claims: Claims, execution_id: str, verb: str, given: Given, key: str | None
) -> Plan:
    """Do to an execution what one of its verbs says.

    Raises:
        Missing: the execution is not at hand.
        Problem: the token or the body speaks against it.
    """
    actor = claims.actor
    row: ExecutionRow = gate.row(subject_of(actor, execution_id))
    known = _VERBS[verb]
    if actor.agent is not None or not known.steers:
        check_acts(actor, row["agent"])
    else:
        check_role(actor, "reviewer", "operator")
    route = f"/v1/executions/{execution_id}/{verb}"
    name = name_of(actor, route, key)
    return _plan(gate, actor, execution_id, known.asked(execution_id, given), name, 200)


def plan_finish(gate: Gate, claims: Claims, execution_id: str, given: Given, key: str | None) -> Plan:
    """End an execution, as the WebSocket says it; errors as `plan_change`."""
    body = read_body(bodies.FinishExecution, given())
    if body.outcome == "completed":
        if body.reason:
            raise Problem(Refusal.INVALID, "an execution that completed has no `reason`: say it in `result`")
        return plan_change(gate, claims, execution_id, "complete", lambda: {"result": body.result}, key)
    if body.result is not None:
        raise Problem(
            Refusal.INVALID, "an execution that did not complete has no `result`: say it in `reason`"
        )
    verb = "fail" if body.outcome == "failed" else "cancel"
    return plan_change(gate, claims, execution_id, verb, lambda: {"reason": body.reason}, key)


def agent_of(gate: Gate, actor: Actor, execution_id: str) -> str:
    """The agent of an execution, also of one that is just being opened here.

    Raises:
        Missing: the execution is not at hand.
    """
    subject = subject_of(actor, execution_id)
    row: ExecutionRow | None = gate.reader.at_hand(subject)
    if row is not None:
        return str(row["agent"])
    agent = gate.live.starting.get(subject.key)
    # Anybody may have asked to open it, also where it is another agent's long since.
    return agent if agent is not None and acts_for(actor, agent) else str(gate.row(subject)["agent"])


def made_id(actor: Actor, route: str, key: str | None) -> str:
    """An id made by the server: the same for the same idempotency key, else a fresh one."""
    return derived_id(actor.tenant, actor.subject, route, key) if key else fresh_id()


def fresh_id() -> str:
    """A random id."""
    return str(uuid.uuid4())


def _plan(
    gate: Gate, actor: Actor, execution_id: str, command: Message, name: CommandName, status: int
) -> Plan:
    def render(shown: ExecutionRow, outcome: Outcome) -> Reply:
        if outcome.old and status == OPENED and not name.keyed and shown["lifecycle"] in CLOSED:
            # The same words, but not a repeat of the same request: an id is never used again.
            raise Problem(Refusal.EXECUTION_CLOSED, f"the execution is {shown['lifecycle']}")
        repeated = outcome.refused is not None
        return gate.json(execution_json(shown), 200 if repeated else status)

    ask = gate.execution_ask(execution_id, command, actor, name)
    return Plan(ask, subject_of(actor, execution_id), render)


def _request_text(request: object) -> str:
    if request is None:
        return ""
    text = request if isinstance(request, str) else canonical(request)
    return within(text, "request", REQUEST_MAX_BYTES)
