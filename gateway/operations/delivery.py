"""Delivery of sensitive values: to the attempt that the log names, for a short time, until they are erased."""

from __future__ import annotations

from typing import Any

from gateway import bodies
from gateway.asking.asker import Ask, CommandName, name_of
from gateway.bodies import read_body
from gateway.identity.authentication import check_acts, check_receives_secrets, check_role
from gateway.live.outcome import Outcome
from gateway.live.reader import Subject
from gateway.operations.plan import Gate, Given, Plan, Reply, Unprepared, never
from gateway.operations.running import check_has
from gateway.operations.sealing import marked_paths, owner_of
from gateway.problems import Problem
from gateway.vault.access import ERASE_WITHIN_S
from gateway.vault.vault import Owner
from projections.folds.rows import json_value
from projections.tables.calls import CallRow
from projections.tables.holds import HoldRow
from schemas import commands as k
from schemas.actor import Actor
from schemas.limits import SECRETS_LEASE_MS
from schemas.refusals import Refusal
from schemas.sensitive import may_have_placeholder
from schemas.token import Claims

Secrets = list[dict[str, Any]]


async def secrets_of_call(gate: Gate, actor: Actor, row: CallRow) -> Secrets:
    """Return the sensitive values of a call, as they are delivered.

    Raises:
        Problem: 403 not_authorised, this token may not read them; 409 expired, they were erased or never existed;
            503, the vault cannot be used now.
    """
    arguments = json_value(row["arguments"])
    marked = marked_paths(gate, actor, row["tool"], arguments)
    if marked:
        check_receives_secrets(actor, row["agent"], row["tool"])
    owner = owner_of(actor, row["execution_id"], "call", row["call_id"])
    return await gate.vault_access.deliver(owner, arguments, marked)


def consumption(gate: Gate, actor: Actor, ask: Ask, subject: Subject, attempt_id: str) -> Plan:
    """Plan a consumption; the answer is the call, with its sensitive values for the attempt that the log names.

    Whether the call has any is known only then: before, another gateway may have read an edit that this one has not.
    """

    def render(call: CallRow, outcome: Outcome) -> Reply:
        check_has(call, attempt_id, gate.live.time.now_ms, Refusal.ALREADY_CONSUMED)
        return gate.json(gate.grants.call_json(call, actor))

    async def deliver(call: CallRow, outcome: Outcome) -> Reply:
        check_has(call, attempt_id, gate.live.time.now_ms, Refusal.ALREADY_CONSUMED)
        # While a call has the status consumed, nothing has happened to it since.
        if gate.live.time.now_ms() >= call["updated_at_ms"] + SECRETS_LEASE_MS:
            raise Problem(Refusal.EXPIRED, "they were delivered, and the time in which to ask again is over")
        secrets = await secrets_of_call(gate, actor, call)
        return gate.json({**gate.grants.call_json(call, actor), "secrets": secrets})

    def delivers(call: CallRow) -> bool:
        return may_have_placeholder(call["arguments"])

    return Plan(ask, subject, render, deliver=deliver, delivers=delivers)


def plan_take(gate: Gate, claims: Claims, subject: Subject, given: Given) -> Plan:
    """Deliver the answer to an env_var request, to one attempt.

    Each repeat is a separate command, so that the decider sees when it arrived.

    Raises:
        Missing: the request is not cached.
        Unprepared: the values must still exist.
        Problem: the token does not permit it, or the body is invalid.
    """
    actor = claims.actor
    row: HoldRow = gate.row(subject)
    request_id = row["request_id"] or ""
    agent = row["agent"] or ""
    check_acts(actor, agent)
    check_receives_secrets(actor, agent)
    body = read_body(bodies.TakeSecrets, given())
    owner = owner_of(actor, row["execution_id"], "request", request_id)
    command = k.TakeSecrets(request_id=request_id, attempt_id=body.attempt_id)

    async def deliver(row: HoldRow, outcome: Outcome) -> Reply:
        return gate.json({"request_id": request_id, "secrets": await _answer(gate, owner, row)})

    async def prepare() -> Plan:
        known = row if row["response"] is not None else await gate.reader.caught_up(subject)
        await _answer(gate, owner, known)
        ask = gate.execution_ask(row["execution_id"], command, actor, CommandName(None))
        return Plan(ask, subject, never, deliver=deliver)

    raise Unprepared(prepare)


def plan_erase(gate: Gate, claims: Claims, subject: Subject, given: Given, key: str | None) -> Plan:
    """Erase the sensitive values of a call or a request: the erasure is recorded first, then done.

    Raises:
        Missing: the call or request is not cached.
        Problem: the token does not permit it, or the body is invalid.
    """
    actor = claims.actor
    row = gate.row(subject)
    check_role(actor, "operator")
    reason = read_body(bodies.EraseSecrets, given()).reason
    own_id = subject.id if subject.kind == "call" else row["request_id"]
    call_id, request_id = (own_id, "") if subject.kind == "call" else ("", own_id)
    command = k.EraseSecrets(call_id=call_id, request_id=request_id, reason=reason)
    owner = owner_of(actor, row["execution_id"], subject.kind, own_id)
    name = name_of(actor, f"/v1/{subject.kind}/{row['execution_id']}/{own_id}/secrets/erase", key)

    async def deliver(_: object, outcome: Outcome) -> Reply:
        erased = await gate.vault_access.run(lambda vault: vault.erase(owner), ERASE_WITHIN_S)
        return gate.json({"call_id": call_id or None, "request_id": request_id or None, "erased": erased})

    ask = gate.execution_ask(row["execution_id"], command, actor, name)
    return Plan(ask, subject, never, deliver=deliver)


async def _answer(gate: Gate, owner: Owner, row: HoldRow) -> Secrets:
    response = json_value(row["response"])
    if row["kind"] != "env_var":
        raise Problem(
            Refusal.INVALID, "only the answer to an env_var request is sensitive: read the request itself"
        )
    if not isinstance(response, dict):
        raise Problem(Refusal.NOT_RELEASED, "these variables have not been given yet")
    return await gate.vault_access.deliver(owner, response, [(name,) for name in response])
