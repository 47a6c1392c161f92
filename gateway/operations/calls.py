"""Tool calls: proposed, consumed, reported, revoked; and the reports that one did harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from gateway import bodies
from gateway.actions import calls as actions
from gateway.asking.asker import name_of
from gateway.bodies import read_body
from gateway.identity.authentication import check_acts, check_role, check_runs
from gateway.live.outcome import Outcome
from gateway.live.reader import Subject
from gateway.operations.delivery import consumption, secrets_of_call
from gateway.operations.executions import agent_of, fresh_id, made_id
from gateway.operations.executions import subject_of as subject_of_execution
from gateway.operations.plan import Gate, Given, Plan, Reply, Unprepared
from gateway.operations.running import check_has
from gateway.operations.sealing import arguments_to_seal, check_call_id, owner_of
from gateway.problems import Problem
from gateway.strictjson import canonical_text
from projections.tables.calls import CallRow
from projections.tables.executions import ExecutionRow
from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.refusals import Refusal
from schemas.sensitive import may_have_placeholder, replaced
from schemas.token import Claims

Render = Callable[[CallRow, Outcome], Reply]
_Planning = Callable[[Gate, Claims, str, str, Given, str | None], Plan]
PENDING = frozenset({"proposed", "held"})
# A decider that takes longer is treated as absent: the answer is then 202 with the call as proposed.
VERDICT_WAIT_S = 5.0


def subject_of(actor: Actor, execution_id: str, call_id: str) -> Subject:
    """The subject of a call in the actor's project."""
    return Subject("call", actor.tenant, actor.project, execution_id, call_id)


def plan_propose(
    gate: Gate,
    claims: Claims,
    execution_id: str,
    given: Given,
    key: str | None,
) -> Plan:
    """Propose a call. If an attempt is named and the call is released, the answer permits the attempt to run it.

    Args:
        gate: the services of the gateway.
        claims: the caller's.
        execution_id: the call's execution.
        given: the parsed body, `bodies.ProposeToolCall`.
        key: its idempotency key.

    Raises:
        Missing: the execution is not cached.
        Problem: the token or this gateway's policy does not permit it, or the body is invalid.
    """
    actor = claims.actor
    agent = agent_of(gate, actor, execution_id)
    check_acts(actor, agent)
    body = read_body(bodies.ProposeToolCall, given())
    gate.policy.check(body.tool)
    call_id = body.call_id or made_id(gate, actor, _route(execution_id), key)
    # The limit is on the size as given; the placeholder of a sensitive value is short.
    arguments = canonical_text(body.arguments, "arguments")
    is_known = gate.reader.at_hand(subject_of(actor, execution_id, call_id)) is not None
    if not is_known:
        gate.quotas.take(actor.tenant, actor.project, agent)
    marked = arguments_to_seal(gate, actor, body.tool, body.arguments)
    if marked and is_known:
        # A repeat may contain other values, and each new one is kept until the log is seen not to name it.
        gate.quotas.take(actor.tenant, actor.project, agent)
    if not marked:
        return _plan_proposal(gate, actor, agent, execution_id, body, call_id, arguments, key)

    check_call_id(execution_id, body.tool, body.arguments, call_id)

    async def prepare() -> Plan:
        sealed = await gate.vault_access.seal(
            owner_of(actor, execution_id, "call", call_id), actor.subject, marked
        )
        public = canonical_text(replaced(body.arguments, sealed), "arguments")
        return _plan_proposal(gate, actor, agent, execution_id, body, call_id, public, key)

    raise Unprepared(prepare)


def _plan_proposal(
    gate: Gate,
    actor: Actor,
    agent: str,
    execution_id: str,
    body: bodies.ProposeToolCall,
    call_id: str,
    arguments: str,
    key: str | None,
) -> Plan:
    claims = gate.policy.claims(body.tool, body.annotations)
    command = k.ProposeToolCall(
        call_id=call_id,
        tool=body.tool,
        arguments=arguments,
        context=canonical_text(body.context, "context"),
        reason=body.reason,
        claims=canonical(claims) if claims else "{}",
        attempt_id=body.attempt_id,
    )
    # An attempt's id is not secret: another subject that sends the same id gets an answer of its own.
    own_ids = (call_id,) if body.attempt_id is None else (call_id, actor.subject)
    name = name_of(actor, _route(execution_id), key, own_ids if body.call_id else None)
    # With an attempt, 200 may be the permission to run: as with a consumption, a repeat goes to the decider again.
    ask = gate.execution_ask(execution_id, command, actor, name, anew=body.attempt_id is not None)
    subject = subject_of(actor, execution_id, call_id)

    def unanswered() -> Reply:
        row: CallRow | None = gate.reader.at_hand(subject)
        if row is None or row["status"] == "proposed":
            return undecided_reply(gate, actor, agent, execution_id, command)
        if row["status"] == "consumed" and body.attempt_id is not None:
            detail = "it cannot be determined now whether this attempt may run the call: repeat the proposal"
            raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1)
        return call_reply(gate, row, actor)

    # If a standing rule has a limit, a use of it is reserved first; in a pause a call waits until the run is resumed.
    run = subject_of_execution(actor, execution_id)

    def is_early(row: CallRow) -> bool:
        known: ExecutionRow | None = gate.reader.at_hand(run)
        return row["status"] == "proposed" and known is not None and known["lifecycle"] != "paused"

    render = (
        _render(gate, actor) if body.attempt_id is None else _render_proposed(gate, actor, body.attempt_id)
    )
    return Plan(ask, subject, render, unanswered, timeout_s=VERDICT_WAIT_S, is_early=is_early)


def _render_proposed(gate: Gate, actor: Actor, attempt_id: str) -> Render:
    """Answer with the call as it is now; `consumed` only while this attempt holds it, and without sealed values."""

    def render(call: CallRow, outcome: Outcome) -> Reply:
        if call["status"] == "consumed":
            check_has(call, attempt_id, gate.live.time.now_ms, Refusal.ALREADY_CONSUMED)
        return call_reply(gate, call, actor)

    return render


def plan_change(
    gate: Gate, claims: Claims, execution_id: str, call_id: str, verb: str, given: Given, key: str | None
) -> Plan:
    """Plan one of the verbs for a call.

    Raises:
        Missing: the call is not cached.
        Unprepared: something must be read first.
        Problem: the token does not permit it, or the body is invalid.
    """
    return _PLANS[verb](gate, claims, execution_id, call_id, given, key)


def _plan_consumption(
    gate: Gate, claims: Claims, execution_id: str, call_id: str, given: Given, key: str | None
) -> Plan:
    """Consume a release. The answer delivers its sensitive values, to this attempt alone.

    200 is the permission to run, so it is answered only while this attempt holds the call: each repeat goes to the
    decider, and the state of the call at the time of the answer counts.

    Raises:
        Missing: the call is not cached.
        Unprepared: it has sensitive values, which must still exist.
        Problem: the token does not permit it, or the body is invalid.
    """
    actor = claims.actor
    subject = subject_of(actor, execution_id, call_id)
    row: CallRow = gate.row(subject)
    check_runs(actor, row)
    body = read_body(actions.ConsumeGrant, given())
    route = f"/v1/executions/{execution_id}/tool-calls/{call_id}/consume"
    # A caller without an attempt id may be another process with the same key, made from the call: both would run it.
    name = name_of(actor, route, key if body.attempt_id else None)
    command = k.ConsumeGrant(
        call_id=call_id,
        digest=body.digest,
        attempt_id=body.attempt_id or fresh_id(),
        grant_id=body.grant_id or "",
    )
    ask = gate.execution_ask(execution_id, command, actor, name, anew=True)
    plan = consumption(gate, actor, ask, subject, command.attempt_id)
    if not may_have_placeholder(row["arguments"]):
        return plan

    async def prepare() -> Plan:
        await secrets_of_call(gate, actor, row)
        return plan

    raise Unprepared(prepare)


def _plan_result(
    gate: Gate, claims: Claims, execution_id: str, call_id: str, given: Given, key: str | None
) -> Plan:
    """Report how a consumed call ended; errors as `plan_change`."""
    actor = claims.actor
    subject = subject_of(actor, execution_id, call_id)
    row: CallRow = gate.row(subject)
    check_runs(actor, row)
    body = read_body(actions.ReportResult, given())
    command = k.ReportResult(
        call_id=call_id,
        attempt_id=body.attempt_id,
        outcome=body.outcome,
        output=canonical_text(body.output, "output"),
        error=body.error or "",
        duration_ms=body.duration_ms or 0,
    )
    route = f"/v1/executions/{execution_id}/tool-calls/{call_id}/result"
    # Another subject that names this attempt is refused, and that refusal must not become the answer to the attempt's
    # owner. Nor is the answer about an earlier release the answer about this one: an attempt could once have both.
    name = name_of(actor, route, key, (body.attempt_id, actor.subject, row["grant_id"] or ""))
    return Plan(gate.execution_ask(execution_id, command, actor, name), subject, _render(gate, actor))


def _plan_heartbeat(
    gate: Gate, claims: Claims, execution_id: str, call_id: str, given: Given, key: str | None
) -> Plan:
    """Report that an attempt is still running its call; errors as `plan_change`.

    However often it is reported, the decider receives at most two commands per lease: `key` has no effect here.
    """
    actor = claims.actor
    subject = subject_of(actor, execution_id, call_id)
    row: CallRow = gate.row(subject)
    check_runs(actor, row)
    body = read_body(actions.RenewLease, given())
    command = k.RenewLease(call_id=call_id, attempt_id=body.attempt_id)
    route = f"/v1/executions/{execution_id}/tool-calls/{call_id}/heartbeat"
    part = _part_of_lease(row, gate.live.time.now_ms())
    name = name_of(actor, route, None, (body.attempt_id, actor.subject, *part))

    def render(row: CallRow, outcome: Outcome) -> Reply:
        check_has(row, body.attempt_id, gate.live.time.now_ms, Refusal.NOT_RELEASED)
        return call_reply(gate, row, actor)

    return Plan(gate.execution_ask(execution_id, command, actor, name), subject, render)


def _part_of_lease(row: CallRow, now_ms: int) -> tuple[str, str]:
    """Return the current lease and which half of it has been reached."""
    left_ms = (row["lease_until_ms"] or 0) - now_ms
    return str(row["lease_until_ms"]), "first" if left_ms * 2 > (row["lease_ms"] or 0) else "second"


def _plan_for_reason(
    verb: str,
    body: type[actions.RevokeGrant | actions.ReportImpact],
    command: type[k.RevokeGrant | k.ReportImpact],
) -> _Planning:
    """The plan of a verb that only a reviewer or operator may ask, with a reason; errors as `plan_change`."""

    def plan(
        gate: Gate, claims: Claims, execution_id: str, call_id: str, given: Given, key: str | None
    ) -> Plan:
        actor = claims.actor
        subject = subject_of(actor, execution_id, call_id)
        gate.row(subject)
        check_role(actor, "reviewer", "operator")
        asked = command(call_id=call_id, reason=read_body(body, given()).reason)
        name = name_of(actor, f"/v1/executions/{execution_id}/tool-calls/{call_id}/{verb}", key)
        return Plan(gate.execution_ask(execution_id, asked, actor, name), subject, _render(gate, actor))

    return plan


_PLANS: dict[str, _Planning] = {
    "consume": _plan_consumption,
    "result": _plan_result,
    "heartbeat": _plan_heartbeat,
    "revoke": _plan_for_reason("revoke", actions.RevokeGrant, k.RevokeGrant),
    "report-impact": _plan_for_reason("report-impact", actions.ReportImpact, k.ReportImpact),
}


def call_reply(gate: Gate, row: CallRow, actor: Actor) -> Reply:
    """Answer an actor with a call: 202 while it waits for a verdict or a person, else 200."""
    return gate.json(gate.grants.call_json(row, actor), 202 if row["status"] in PENDING else 200)


def _route(execution_id: str) -> str:
    return f"/v1/executions/{execution_id}/tool-calls"


def _render(gate: Gate, actor: Actor) -> Render:
    def render(row: CallRow, outcome: Outcome) -> Reply:
        return call_reply(gate, row, actor)

    return render


def undecided_reply(
    gate: Gate, actor: Actor, agent: str, execution_id: str, command: k.ProposeToolCall
) -> Reply:
    """The answer about a call that waits for its verdict."""
    return gate.json(_proposed(actor, agent, execution_id, command), 202)


def _proposed(actor: Actor, agent: str, execution_id: str, command: k.ProposeToolCall) -> dict[str, Any]:
    """A call without a verdict: what was proposed, and no guesses."""
    return {
        "tenant": actor.tenant,
        "project": actor.project,
        "execution_id": execution_id,
        "call_id": command.call_id,
        "revision": 1,
        "agent": agent,
        "tool": command.tool,
        "tool_version": "",
        "arguments": orjson.Fragment(command.arguments),
        "digest": "",
        "approved_arguments": None,
        "reason": command.reason,
        "status": "proposed",
        "edits": [],
        "impact_reports": 0,
        **dict.fromkeys(_NOT_YET),
    }


# The fields that a call has only after it was recorded.
_NOT_YET = (
    "verdict",
    "hold_id",
    "deadline_at",
    "decision",
    "grant",
    "denied_because",
    "feedback",
    "rollback",
    "probe",
    "attempt_id",
    "run_deadline_at",
    "lease_until",
    "lease_seconds",
    "output",
    "error",
    "duration_ms",
    "proposed_at",
    "updated_at",
    "ended_at",
)
