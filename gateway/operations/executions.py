"""Executions: opened, paused, resumed and ended."""

from __future__ import annotations

import uuid

from gateway import bodies
from gateway.actions.executions import VERBS
from gateway.asking.asker import CommandName, caller_of, name_of
from gateway.bodies import read_body
from gateway.identity.authentication import acts_for, check_acts, check_role, permitted_scope
from gateway.live.outcome import Outcome
from gateway.live.reader import Subject
from gateway.operations.plan import Gate, Given, Plan, Reply
from gateway.problems import Problem
from gateway.strictjson import canonical_text, within
from projections.folds.executions import execution_json
from projections.folds.states import CLOSED
from projections.tables.executions import ExecutionRow
from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.limits import REQUEST_MAX_BYTES
from schemas.message import Message
from schemas.refusals import Refusal
from schemas.token import Claims

OPENED = 201
HOW_TO_GET_ONE = "(placet token issue --subject NAME --role agent --agent NAME)"
UNNAMED_AGENT = (
    "this token does not belong to an agent: name the agent of the new execution in `agent`, or use a token that was "
    f"issued for one {HOW_TO_GET_ONE}"
)
_VERBS = {verb.name: verb for verb in VERBS}


def subject_of(actor: Actor, execution_id: str) -> Subject:
    """The subject of an execution in the actor's project."""
    return Subject("execution", actor.tenant, actor.project, execution_id, execution_id)


def plan_start(gate: Gate, claims: Claims, given: Given, key: str | None) -> Plan:
    """Open an execution.

    Args:
        gate: the services of the gateway.
        claims: the caller's.
        given: the parsed body, `bodies.StartExecution`.
        key: its idempotency key.

    Raises:
        Problem: the body is invalid, or the token does not permit it.
    """
    body = read_body(bodies.StartExecution, given())
    actor = claims.actor
    agent = body.agent or actor.agent
    if agent is None:
        raise Problem(Refusal.INVALID, UNNAMED_AGENT)
    check_acts(actor, agent)
    command = k.StartExecution(
        agent=agent,
        user=permitted_scope(claims, "user", body.user),
        workspace=permitted_scope(claims, "workspace", body.workspace),
        request=request_text(body.request),
        context=canonical_text(body.context, "context"),
        idle_ms=idle_ms_of(body.idle_seconds),
    )
    execution_id = body.execution_id or made_id(gate, actor, "/v1/executions", key)
    name = name_of(actor, "/v1/executions", key, (execution_id,) if body.execution_id else None)
    plan = _plan(gate, actor, execution_id, command, name, OPENED)
    gate.live.note_start(plan.ask.key, agent)
    return plan


def plan_change(
    gate: Gate, claims: Claims, execution_id: str, verb: str, given: Given, key: str | None
) -> Plan:
    """Plan one of the verbs for an execution.

    Raises:
        Missing: the execution is not cached.
        Problem: the token does not permit it, or the body is invalid.
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
    """End an execution by the WebSocket's message; errors as `plan_change`."""
    body = read_body(bodies.FinishExecution, given())
    if body.outcome == "completed":
        if body.reason:
            raise Problem(
                Refusal.INVALID, "an execution that completed has no `reason`: put it into `result`"
            )
        return plan_change(gate, claims, execution_id, "complete", lambda: {"result": body.result}, key)
    if body.result is not None:
        raise Problem(
            Refusal.INVALID, "an execution that did not complete has no `result`: put it into `reason`"
        )
    verb = "fail" if body.outcome == "failed" else "cancel"
    return plan_change(gate, claims, execution_id, verb, lambda: {"reason": body.reason}, key)


def agent_of(gate: Gate, actor: Actor, execution_id: str) -> str:
    """Return the agent of an execution, also of one that this gateway is just opening.

    Raises:
        Missing: the execution is not cached.
    """
    subject = subject_of(actor, execution_id)
    row: ExecutionRow | None = gate.reader.at_hand(subject)
    if row is not None:
        return str(row["agent"])
    agent = gate.live.starting.get(subject.key)
    # Any caller may have requested to open it, even if it has long belonged to another agent.
    return agent if agent is not None and acts_for(actor, agent) else str(gate.row(subject)["agent"])


def made_id(gate: Gate, actor: Actor, route: str, key: str | None) -> str:
    """Return an id made by the server: the same for the same idempotency key, else a fresh one."""
    if not key:
        return fresh_id()
    return gate.asker.ids.named(*caller_of(actor), route, key)


def fresh_id() -> str:
    """Return a random id."""
    return str(uuid.uuid4())


def _plan(
    gate: Gate, actor: Actor, execution_id: str, command: Message, name: CommandName, status: int
) -> Plan:
    def render(shown: ExecutionRow, outcome: Outcome) -> Reply:
        if outcome.old and status == OPENED and not name.keyed and shown["lifecycle"] in CLOSED:
            # The body is the same, but this is not a repeat of the same request: an id is never reused.
            raise Problem(Refusal.EXECUTION_CLOSED, f"the execution is {shown['lifecycle']}")
        repeated = outcome.refused is not None
        return gate.json(execution_json(shown), 200 if repeated else status)

    ask = gate.execution_ask(execution_id, command, actor, name)
    return Plan(ask, subject_of(actor, execution_id), render)


def idle_ms_of(idle_seconds: float | None) -> int | None:
    """Return the time after which a run ends by itself, as commands have it."""
    return None if idle_seconds is None else int(idle_seconds * 1000)


def request_text(request: object) -> str:
    """Return what a run is asked for as text: JSON, unless it is one already.

    Raises:
        Problem: 413 too_large.
    """
    if request is None:
        return ""
    text = request if isinstance(request, str) else canonical(request)
    return within(text, "request", REQUEST_MAX_BYTES)
