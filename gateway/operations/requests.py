"""Requests: an agent's questions to a person. A request is a hold; this is the agent's side of it."""

from __future__ import annotations

from typing import Any

from gateway import bodies
from gateway.asking.asker import name_of
from gateway.bodies import read_body
from gateway.deciding import sees_hold
from gateway.identity.authentication import check_acts
from gateway.live.outcome import Outcome
from gateway.live.reader import REQUESTS_MAX, Named, Subject
from gateway.live.waiters import reused
from gateway.operations.executions import agent_of, made_id, plan_start
from gateway.operations.executions import subject_of as execution_of
from gateway.operations.plan import Gate, Given, Plan, Reply, planned
from gateway.problems import Problem, not_found, shortened
from gateway.strictjson import canonical_text
from projections.folds.holds import request_json
from projections.tables.holds import HoldRow
from schemas import commands as k
from schemas.actor import Actor
from schemas.command_rules import unfit
from schemas.ids import derived_id
from schemas.limits import QUESTION_IDLE_S, REQUEST_MAX_BYTES
from schemas.questions.rules import question_problem
from schemas.refusals import Refusal
from schemas.token import Claims

ROUTE = "/v1/requests"


def subject_of(actor: Actor, execution_id: str, request_id: str) -> Subject:
    """The subject of a request in the actor's project."""
    hold_id = derived_id("hold", actor.tenant, actor.project, execution_id, "request", request_id)
    return Subject("request", actor.tenant, actor.project, "", hold_id)


async def find_request(
    gate: Gate,
    actor: Actor,
    request_id: str,
    execution_id: str | None,
    several: str = "several executions have a request with this id: name the execution with execution_id",
) -> Subject:
    """Find a request by its id, which is unique in its execution but not in the project.

    Args:
        gate: the services of the gateway.
        actor: the caller; without an execution, only requests that it may see count.
        request_id: the id that the execution gave it.
        execution_id: its execution; None if the caller does not name one.
        several: what a caller is told who has to name which of several is meant, by a field of their own interface.

    Raises:
        Problem: 404 not_found; 409 id_reused, several executions have a request of this id; 503 unavailable.
    """
    if execution_id is not None:
        return subject_of(actor, execution_id, request_id)
    found = await gate.reader.requests(Named(actor.tenant, actor.project, request_id, actor.agent))
    seen = [row for row in found if sees_hold(gate.live, row, actor)]
    if len(seen) > 1 or (seen and len(found) >= REQUESTS_MAX):
        raise Problem(Refusal.ID_REUSED, several)
    if not seen:
        raise not_found("request")
    return subject_of(actor, seen[0]["execution_id"], request_id)


async def plan_request(gate: Gate, claims: Claims, given: Given, key: str | None) -> Plan:
    """Ask a person something; if no execution is named, one is opened for the request first.

    Raises:
        Problem: the token does not permit it, or the body is invalid.
    """
    body = read_body(bodies.RequestHumanInput, given())
    if body.kind == "env_var" and (body.default is not None or body.options):
        raise Problem(
            Refusal.INVALID,
            "an env_var request takes neither options nor a default: they would be written down",
        )
    actor = claims.actor
    request_id = body.request_id or made_id(gate, actor, ROUTE, key)
    execution_id = body.execution_id
    if execution_id is None:
        # Each agent has an execution of its own, whose id nobody can know before it is opened: so no agent can take
        # another's by choosing the id first.
        asking = body.agent or actor.agent or ""
        execution_id = gate.asker.ids.named(actor.tenant, actor.project, ROUTE, request_id, asking)
        start: dict[str, Any] = {
            "execution_id": execution_id,
            # A description of the run, shown with the hold: the question itself is kept whole.
            "request": shortened(body.question, REQUEST_MAX_BYTES),
            "idle_seconds": QUESTION_IDLE_S,
        }
        if body.agent is not None:
            start["agent"] = body.agent
        opening = plan_start(gate, claims, lambda: start, None)
        # A fresh id is no repeat's.
        earlier = execution_of(actor, execution_id) if body.request_id or key else None
        await _check_askable(gate, _command(body, request_id), earlier)
        plan = _plan(gate, claims, body, execution_id, request_id, key)
        # If the request's id is made from the key, an earlier request with that key had another body.
        is_made = key is not None and body.request_id is None
        return plan._replace(first=opening.ask, refused=_key_reused if is_made else _id_reused)
    where = execution_id
    return await planned(gate, lambda: _plan(gate, claims, body, where, request_id, key))


async def _check_askable(gate: Gate, command: k.RequestHumanInput, earlier: Subject | None) -> None:
    """Check all that the decider refuses of a new question, so that nothing is opened for one that it refuses.

    If the execution was opened before, the decider is asked all the same: this very question may have been accepted
    by the rules of an earlier version, and then it is answered as every repeat is.

    Args:
        gate: the services of the gateway.
        command: the question.
        earlier: the execution that an earlier request with this id would have opened; None if there can be none.

    Raises:
        Problem: 413 too_large, 400 malformed, 422 invalid or unknown_option; 503 unavailable, it is not known now
            whether the execution was opened.
    """
    if (fault := unfit(command)) is not None:
        raise Problem(*fault)
    fault = question_problem(command)
    if fault is not None and (earlier is None or not await _is_there(gate, earlier)):
        raise Problem(*fault)


async def _is_there(gate: Gate, execution: Subject) -> bool:
    try:
        await gate.reader.read(execution)
    except Problem as problem:
        if problem.code is not Refusal.NOT_FOUND:
            raise
        return False
    return True


def _key_reused(problem: Problem) -> Problem:
    return reused() if problem.code is Refusal.ID_REUSED else problem


def _id_reused(problem: Problem) -> Problem:
    """The caller knows nothing of the execution that was opened for its question."""
    detail = "the request id was used with another body"
    return Problem(problem.code, detail) if problem.code is Refusal.ID_REUSED else problem


def request_reply(gate: Gate, row: HoldRow) -> Reply:
    """A request as an answer."""
    return gate.json(request_json(row))


def _plan(
    gate: Gate,
    claims: Claims,
    body: bodies.RequestHumanInput,
    execution_id: str,
    request_id: str,
    key: str | None,
) -> Plan:
    actor = claims.actor
    agent = agent_of(gate, actor, execution_id)
    check_acts(actor, agent)
    command = _command(body, request_id)
    name = name_of(actor, ROUTE, key, (execution_id, request_id) if body.request_id else None)
    subject = subject_of(actor, execution_id, request_id)
    if gate.reader.at_hand(subject) is None:
        gate.quotas.take(actor.tenant, actor.project, agent)

    def render(row: HoldRow, outcome: Outcome) -> Reply:
        check_acts(actor, row["agent"] or "")
        return gate.json(request_json(row), 201 if outcome.refused is None else 200)

    return Plan(gate.execution_ask(execution_id, command, actor, name), subject, render)


def _command(body: bodies.RequestHumanInput, request_id: str) -> k.RequestHumanInput:
    # A null is the default of rejecting, except for variables, which have no default.
    has_default = "default" in body.model_fields_set and body.kind != "env_var"
    return k.RequestHumanInput(
        request_id=request_id,
        kind=body.kind,
        question=body.question,
        options=canonical_text(body.options, "options"),
        fields=canonical_text(body.fields, "fields"),
        decision_type=body.decision_type,
        timeout_ms=_ms(body.timeout_seconds),
        default=canonical_text(body.default, "default") if has_default else None,
        allow_custom=body.allow_custom,
        multiple=body.multiple,
        tool=body.tool,
        action=body.action,
        risk=body.risk or "",
        remember=body.remember,
        remind_after_ms=_ms(body.remind_after_seconds),
    )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else max(int(seconds * 1000), 1)
