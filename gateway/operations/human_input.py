"""The tool `human_input`: a question to a person whose answer is fetched later, by its task id.

A task is a request of kind clarification (`gateway.operations.requests`), and its id is the request's.
"""

from __future__ import annotations

from typing import Any

import orjson

from gateway import bodies
from gateway.bodies import read_body
from gateway.deciding import sees_hold
from gateway.live.outcome import Outcome
from gateway.operations.executions import HOW_TO_GET_ONE
from gateway.operations.holds import plan_decision
from gateway.operations.holds import subject_of as hold_of
from gateway.operations.plan import Gate, Given, Plan, Reply, planned
from gateway.operations.requests import find_request, plan_request
from gateway.problems import Problem
from gateway.resources.human_input import (
    WAITING,
    answer_of,
    default_taken,
    question_of,
    started,
    unanswered_status,
)
from projections.folds.holds import request_json
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.refusals import Refusal
from schemas.token import Claims

SEVERAL = "several questions have this task_id: give the hold_id, too"
# The tool takes no agent: it asks for the agent of the token.
NO_AGENT = (
    "this token does not belong to an agent: use a token that was issued for the agent that asks "
    + HOW_TO_GET_ONE
)
# They are typed where nobody else sees them, and so are not among the messages of a chat.
_NO_VARIABLES = "variables are not answered here: use POST /v1/holds/{hold_id}/decision, which seals them"


def check_is_agent(actor: Actor) -> None:
    """Check that the caller is an agent.

    Raises:
        Problem: 422 invalid, the token does not belong to one.
    """
    if actor.agent is None:
        raise Problem(Refusal.INVALID, NO_AGENT)


def check_no_variables(kind: str, response: Any) -> None:
    """Refuse to answer a question for variables, which can only be rejected here.

    Raises:
        Problem: 422 invalid_arguments, what no interface would take for variables; 422 invalid, variables.
    """
    if kind == "env_var" and response is not None:
        fits = isinstance(response, dict)
        raise Problem(Refusal.INVALID if fits else Refusal.INVALID_ARGUMENTS, _NO_VARIABLES)


async def plan_tool(gate: Gate, claims: Claims, given: Given, key: str | None) -> Plan:
    """Ask a person, and answer with the task id at once.

    Raises:
        Problem: as `check_is_agent` and `plan_request`.
    """
    body = read_body(bodies.RunTool, given())
    check_is_agent(claims.actor)
    try:
        plan = await plan_request(gate, claims, lambda: question_of(body.arguments.prompt), key)
    except Problem as problem:
        raise problem.named({"question": "arguments.prompt"}) from problem

    def render(row: HoldRow, outcome: Outcome) -> Reply:
        return Reply(200, orjson.dumps(started(row["request_id"] or "")))

    return plan._replace(render=render)


async def plan_answer(gate: Gate, claims: Claims, task_id: str, response: Any, feedback: str) -> Plan:
    """Answer a task, open or closed, that the caller may see.

    Raises:
        Problem: 404 not_found; 409 id_reused, several tasks have this id; 503 unavailable; or as `plan_answer_to`.
    """
    subject = await find_request(gate, claims.actor, task_id, None, SEVERAL)
    return await planned(gate, lambda: plan_answer_to(gate, claims, task_id, subject.id, response, feedback))


def plan_answer_to(
    gate: Gate, claims: Claims, task_id: str, hold_id: str, response: Any, feedback: str
) -> Plan:
    """Answer the task of a hold with any JSON; null rejects it.

    Raises:
        Missing: the hold is not cached.
        Problem: 404 not_found, the hold is not one of this task; or as `check_no_variables` and `plan_decision`.
    """
    row: HoldRow = gate.row(hold_of(claims.actor, hold_id))
    # Whoever may not see it is told nothing of it: the decider refuses and records their answer.
    if sees_hold(gate.live, row, claims.actor):
        if row["request_id"] != task_id:
            raise Problem(Refusal.NOT_FOUND, "the hold is not one of this task")
        check_no_variables(row["kind"], response)
    return plan_decision(gate, claims, hold_id, lambda: answer_of(response, feedback), None)


def task_reply(row: HoldRow) -> Reply:
    """The answer to a task, in its present state."""
    if row["status"] == "open":
        return Reply(202, orjson.dumps({"status": WAITING, "task_id": row["request_id"]}))
    return Reply(200, orjson.dumps(_ended(row)))


def _ended(row: HoldRow) -> dict[str, Any]:
    request = request_json(row)
    status = unanswered_status(request["status"], request["decision"])
    if status is None:
        return {"response": request["response"]}
    return {"response": default_taken(request), "status": status, "feedback": request["feedback"]}
