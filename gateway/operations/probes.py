"""Planted calls: known-bad calls by which an operator sees whether people notice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gateway import bodies
from gateway.asking.asker import name_of
from gateway.bodies import read_body
from gateway.identity.authentication import check_role, permitted_scope
from gateway.live.outcome import Outcome
from gateway.operations.calls import subject_of as call_subject
from gateway.operations.executions import OPENED, idle_ms_of, made_id, request_text, subject_of
from gateway.operations.plan import Gate, Given, Plan, Reply
from gateway.operations.sealing import arguments_to_seal
from gateway.problems import Problem
from gateway.strictjson import canonical_text
from projections.folds.calls import planted_json
from projections.folds.executions import execution_json
from projections.tables.calls import CallRow
from projections.tables.executions import ExecutionRow
from schemas.canonical import canonical
from schemas.probe_commands import PlantProbe
from schemas.refusals import Refusal
from schemas.token import Claims

ROUTE = "/v1/probes"
RUNS = f"{ROUTE}/runs"


def plan_plant(gate: Gate, claims: Claims, given: Given, key: str | None) -> Plan:
    """Plant a call, in a run that it opens, or in the one that was opened for it.

    Args:
        gate: the services of the gateway.
        claims: the caller's.
        given: the parsed body, `bodies.PlantProbe`.
        key: its idempotency key.

    Raises:
        Problem: the token or this gateway's policy does not permit it, or the body is invalid.
    """
    actor = claims.actor
    body = _body_of(gate, claims, given)
    execution_id = body.execution_id or made_id(gate, actor, ROUTE, key)
    command = _command(gate, claims, body, key)
    own_ids = (execution_id, command.call_id) if body.execution_id and body.call_id else None
    ask = gate.execution_ask(execution_id, command, actor, name_of(actor, ROUTE, key, own_ids))

    def render(row: CallRow, outcome: Outcome) -> Reply:
        return gate.json(planted_json(row), 200 if outcome.old else OPENED)

    return Plan(ask, call_subject(actor, execution_id, command.call_id), render)


def plan_open(gate: Gate, claims: Claims, given: Given, key: str | None) -> Plan:
    """Open a run in which a call is planted later; arguments and errors as `plan_plant`."""
    actor = claims.actor
    body = _body_of(gate, claims, given)
    execution_id = body.execution_id or made_id(gate, actor, RUNS, key)
    command = _command(gate, claims, body, key).model_copy(update={"only_opens": True})
    own_id = (execution_id,) if body.execution_id else None
    ask = gate.execution_ask(execution_id, command, actor, name_of(actor, RUNS, key, own_id))

    def render(row: ExecutionRow, outcome: Outcome) -> Reply:
        return gate.json(execution_json(row), 200 if outcome.old else OPENED)

    return Plan(ask, subject_of(actor, execution_id), render)


class AgentsAccounts(NamedTuple):
    """What the views know of an agent: whether it ever did anything, and the accounts that requested its holds."""

    is_known: bool
    accounts: Sequence[str]


def check_known(gate: Gate, claims: Claims, body: bodies.PlantProbe, agent: AgentsAccounts) -> None:
    """Check that the tool, the agent and its account exist: people recognise a call of any others as planted.

    Raises:
        Problem: 422, one of them is not known; the detail says which, and what to give.
    """
    definitions, actor = gate.live.definitions, claims.actor
    if not definitions.tool_versions(actor.tenant, actor.project, body.tool):
        raise Problem(
            Refusal.INVALID,
            f"tool: no tool {body.tool} is published for this project: give one of `placet tools` (GET /v1/tools), "
            "or publish it",
        )
    people = definitions.people.of(actor.tenant, actor.project)
    owners = people.delegators_of(body.agent)
    if not agent.is_known and not owners:
        raise Problem(
            Refusal.INVALID,
            f"agent: no agent {body.agent} has done anything in this project: give one of GET /v1/agents",
        )
    requester = body.requester or body.agent
    # An agent's name stands for its account as long as nothing that it proposed was held.
    known = {*agent.accounts, *(account for name in owners for account in people.accounts_of(name))}
    if requester not in (known or {body.agent}):
        told = f"such as {agent.accounts[0]}" if agent.accounts else "once it has any"
        raise Problem(
            Refusal.INVALID,
            f"requester: the account {requester} requested no hold of the agent {body.agent}: give the requester of "
            f"its holds ({told}), or publish the account in a principal without roles that has this agent",
        )


def _body_of(gate: Gate, claims: Claims, given: Given) -> bodies.PlantProbe:
    check_role(claims.actor, "operator")
    body = read_body(bodies.PlantProbe, given())
    gate.policy.check(body.tool)
    if arguments_to_seal(gate, claims.actor, body.tool, body.arguments):
        # They would be kept for an attempt that never comes.
        raise Problem(
            Refusal.INVALID, "arguments: a planted call cannot have sensitive values: leave them out"
        )
    return body


def _command(gate: Gate, claims: Claims, body: bodies.PlantProbe, key: str | None) -> PlantProbe:
    return PlantProbe(
        agent=body.agent,
        call_id=body.call_id or made_id(gate, claims.actor, f"{ROUTE}/call", key),
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
        # As an agent's own call: a policy of this gateway can raise its risk, which people see.
        claims=canonical(gate.policy.claims(body.tool, body.annotations)),
        run_context=canonical_text(body.run_context, "run_context"),
        idle_ms=idle_ms_of(body.idle_seconds),
    )
