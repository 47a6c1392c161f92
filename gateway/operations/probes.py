"""Planted calls: known-bad calls by which an operator sees whether people notice."""

from __future__ import annotations

from gateway import bodies
from gateway.asking.asker import name_of
from gateway.bodies import read_body
from gateway.identity.authentication import check_role, permitted_scope
from gateway.live.outcome import Outcome
from gateway.operations.calls import subject_of
from gateway.operations.executions import OPENED, made_id, request_text
from gateway.operations.plan import Gate, Given, Plan, Reply
from gateway.operations.sealing import arguments_to_seal
from gateway.problems import Problem
from gateway.strictjson import canonical_text
from projections.folds.calls import planted_json
from projections.tables.calls import CallRow
from schemas.canonical import canonical
from schemas.probe_commands import PlantProbe
from schemas.refusals import Refusal
from schemas.token import Claims

ROUTE = "/v1/probes"


def plan_plant(gate: Gate, claims: Claims, given: Given, key: str | None) -> Plan:
    """Plant a call.

    Args:
        gate: the services of the gateway.
        claims: the caller's.
        given: the parsed body, `bodies.PlantProbe`.
        key: its idempotency key.

    Raises:
        Problem: the token or this gateway's policy does not permit it, or the body is invalid.
    """
    actor = claims.actor
    check_role(actor, "operator")
    body = read_body(bodies.PlantProbe, given())
    gate.policy.check(body.tool)
    if arguments_to_seal(gate, actor, body.tool, body.arguments):
        # They would be kept for an attempt that never comes.
        raise Problem(
            Refusal.INVALID, "arguments: a planted call cannot have sensitive values: leave them out"
        )
    execution_id = body.execution_id or made_id(gate, actor, ROUTE, key)
    call_id = body.call_id or made_id(gate, actor, f"{ROUTE}/call", key)
    command = PlantProbe(
        agent=body.agent,
        call_id=call_id,
        tool=body.tool,
        arguments=canonical_text(body.arguments, "arguments"),
        note=body.note,
        wrong=canonical(body.wrong),
        requester=body.requester,
        user=permitted_scope(claims, "user", body.user),
        workspace=permitted_scope(claims, "workspace", body.workspace),
        request=request_text(body.request),
        reason=body.reason,
        context=canonical_text(body.context, "context"),
    )
    own_ids = (execution_id, call_id) if body.execution_id and body.call_id else None
    ask = gate.execution_ask(execution_id, command, actor, name_of(actor, ROUTE, key, own_ids))

    def render(row: CallRow, outcome: Outcome) -> Reply:
        return gate.json(planted_json(row), 200 if outcome.old else OPENED)

    return Plan(ask, subject_of(actor, execution_id, call_id), render)
