"""Holds: claimed, delegated, extended and decided."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from gateway import bodies
from gateway.actions.holds import VERBS
from gateway.asking.asker import CommandName, name_of
from gateway.bodies import read_body
from gateway.deciding import check_sees_hold
from gateway.live.outcome import Outcome
from gateway.live.reader import Subject
from gateway.operations.plan import Gate, Given, Plan, Reply, Unprepared
from gateway.operations.sealing import arguments_to_seal, owner_of, variables_to_seal
from gateway.problems import Problem
from gateway.strictjson import canonical_text
from gateway.vault.vault import Owner
from projections.folds.holds import hold_json, requirements_json
from projections.folds.rows import json_value
from projections.tables.holds import HoldRow
from schemas import commands as k
from schemas.actor import Actor
from schemas.call_history import history_from_text
from schemas.display.judged import in_short
from schemas.events.calls import ProbeEnded
from schemas.events.holds import HoldOpened
from schemas.events.rules import RuleAsked
from schemas.refusals import Refusal
from schemas.sensitive import Marked, replaced
from schemas.standing_rule import standing_rule_from_text
from schemas.token import Claims

_VERBS = {verb.name: verb for verb in VERBS}


def subject_of(actor: Actor, hold_id: str) -> Subject:
    """The subject of a hold in the actor's project."""
    return Subject("hold", actor.tenant, actor.project, "", hold_id)


def plan_change(gate: Gate, claims: Claims, hold_id: str, verb: str, given: Given, key: str | None) -> Plan:
    """Plan one of the verbs for a hold.

    Raises:
        Missing: the hold is not cached.
        Problem: the token does not permit it, or the body is invalid.
    """
    actor = claims.actor
    row: HoldRow = gate.row(subject_of(actor, hold_id))
    _check_person(actor)
    command = _VERBS[verb].asked(hold_id, given)
    name = name_of(actor, f"/v1/holds/{hold_id}/{verb}", key)

    def render(row: HoldRow, outcome: Outcome) -> Reply:
        more: dict[str, Any] = {}
        if isinstance(command, k.DelegateHold):
            people = gate.live.definitions.people.of(actor.tenant, actor.project)
            more["assignee_known"] = people.knows(command.to)
        return gate.json(hold_json(row) | more)

    ask = gate.execution_ask(row["execution_id"], command, actor, name)
    return Plan(ask, subject_of(actor, hold_id), render)


def plan_decision(gate: Gate, claims: Claims, hold_id: str, given: Given, key: str | None) -> Plan:
    """Decide a hold; the same decision sent again by the same person is one decision, also without a key.

    Raises:
        Missing: the hold is not cached.
        Problem: the token does not permit it, or the body is invalid.
    """
    actor = claims.actor
    row: HoldRow = gate.row(subject_of(actor, hold_id))
    _check_person(actor)
    body = read_body(bodies.DecideHold, given())
    name = name_of(actor, f"/v1/holds/{hold_id}/decision", key, (actor.subject,))
    return _plan_decision(gate, actor, row, body, name)


def plan_bulk_decision(gate: Gate, claims: Claims, item: bodies.DecideOneOfMany, key: str | None) -> Plan:
    """Decide one hold of a bulk: only a call of low risk, of familiar values, with the digest that the person saw.

    Raises:
        Missing: the hold is not cached.
        Problem: the token does not permit it or to see the hold, the risk is not low, or values are new or tainted.
    """
    actor = claims.actor
    row: HoldRow = gate.row(subject_of(actor, item.hold_id))
    _check_person(actor)
    # The answers below tell what the call's risk is, and which of its values are new.
    check_sees_hold(gate.live, row, actor)
    if row["risk_level"] != "low" or row["cause"] != "policy":
        raise Problem(
            Refusal.INVALID, "only calls of low risk can be decided in bulk: decide this hold separately"
        )
    history = history_from_text(row["history"])
    if not history.is_familiar:
        told = "; ".join(in_short(history))
        raise Problem(
            Refusal.INVALID,
            f"the values of this call are not all known ({told}): decide this hold separately",
        )
    if row["must_read"]:
        raise Problem(Refusal.INVALID, "this hold must be read in full: decide it separately")
    name = name_of(actor, f"/v1/holds/{item.hold_id}/decision", key, (actor.subject,))
    return _plan_decision(gate, actor, row, item, name)


def _plan_decision(
    gate: Gate, actor: Actor, row: HoldRow, body: bodies.DecideHold, name: CommandName
) -> Plan:
    if body.edited_arguments is not None:
        canonical_text(body.edited_arguments, "edited_arguments")
    try:
        marked = _sensitive(gate, actor, row, body)
    except Problem as problem:
        # It tells what the hold asks for.
        check_sees_hold(gate.live, row, actor)
        raise _as_sent(row, problem) from problem
    if not marked:
        return _plan_sealed(gate, actor, row, body, name)
    # Nothing is sealed for a stranger.
    check_sees_hold(gate.live, row, actor)

    async def prepare() -> Plan:
        sealed = await gate.vault_access.seal(_owner(actor, row), actor.subject, marked)
        if row["request_id"]:
            public = body.model_copy(update={"value": replaced(body.value, sealed)})
        else:
            public = body.model_copy(update={"edited_arguments": replaced(body.edited_arguments, sealed)})
        return _plan_sealed(gate, actor, row, public, name)

    raise Unprepared(prepare)


def _sensitive(gate: Gate, actor: Actor, row: HoldRow, body: bodies.DecideHold) -> list[Marked]:
    """Return the sensitive values in a decision, which no other person may read."""
    if row["kind"] == "env_var" and row["request_id"]:
        if body.edited_arguments is not None:
            raise Problem(Refusal.INVALID, "a request has no arguments: answer with the variables (respond)")
        if body.decision == "respond":
            return variables_to_seal(row, body.value)
        if body.value is not None:
            raise Problem(
                Refusal.INVALID, f"{body.decision} takes no value: leave the value out, or use respond"
            )
    tool = row["tool"]
    if body.edited_arguments is None or not row["call_id"] or tool is None:
        return []
    kept = json_value(row["arguments"])
    return arguments_to_seal(gate, actor, tool, body.edited_arguments, kept)


def _owner(actor: Actor, row: HoldRow) -> Owner:
    kind = "request" if row["request_id"] else "call"
    return owner_of(actor, row["execution_id"], kind, row["request_id"] or row["call_id"] or "")


def _plan_sealed(gate: Gate, actor: Actor, row: HoldRow, body: bodies.DecideHold, name: CommandName) -> Plan:
    edited = body.edited_arguments
    has_value = "value" in body.model_fields_set
    command = k.DecideHold(
        hold_id=row["hold_id"],
        decision=body.decision,
        digest=body.digest,
        edited_arguments=None if edited is None else canonical_text(edited, "edited_arguments"),
        feedback=body.feedback,
        value=canonical_text(body.value, "value") if has_value else None,
        scope=body.scope,
        view_digest=body.view_digest,
        remember=_remember(body),
    )

    def render(row: HoldRow, outcome: Outcome) -> Reply:
        return decision_reply(gate, row, outcome)

    dwell_ms = gate.view_times.dwell_ms(actor, row["hold_id"])
    ask = gate.execution_ask(row["execution_id"], command, actor, name, dwell_ms=dwell_ms)
    return Plan(ask, subject_of(actor, row["hold_id"]), render, refused=partial(_as_sent, row))


def _as_sent(row: HoldRow, problem: Problem) -> Problem:
    """Return a refusal of what a decision contains, by the name of the field that contains it."""
    field = "value" if row["request_id"] else "edited_arguments"
    return problem.named({"arguments": field, "$": field})


def _remember(body: bodies.DecideHold) -> str | None:
    if body.remember is None:
        return None
    return canonical_text(body.remember.model_dump(mode="json", exclude_unset=True), "remember")


def decision_reply(gate: Gate, row: HoldRow, outcome: Outcome) -> Reply:
    """Answer a decision: resolved, or recorded while the quorum is not met."""
    decision_id: str | None
    if outcome.decision_id:
        decision_id, status = outcome.decision_id, "resolved" if outcome.resolves else "recorded"
    else:
        decision_id, status = row["decision_id"], "recorded" if row["status"] == "open" else "resolved"
    opened, rule = outcome.opened, outcome.asked_rule
    answer = {
        "status": status,
        "decision_id": decision_id,
        "hold": hold_json(row),
        "edited_digest": outcome.edited_digest or None,
        "next_hold": None if opened is None else _next_hold_json(opened, outcome.counted),
        "rule": None if rule is None else _rule_json(rule),
        "probe": None if outcome.probe is None else _probe_json(outcome.probe),
    }
    return gate.json(answer)


def _next_hold_json(opened: HoldOpened, counted: int) -> dict[str, Any]:
    # Taken from the event itself: the editor may not be permitted to read the hold that others must decide.
    return {
        "hold_id": opened.hold_id,
        "digest": opened.digest,
        "roles": opened.roles,
        "reviewers": opened.reviewers,
        "excluded": opened.excluded,
        "exclude_requester": opened.exclude_requester,
        "quorum": opened.quorum,
        "requirements": requirements_json(opened.requirements),
        "counted": counted,
    }


def _rule_json(asked: RuleAsked) -> dict[str, Any]:
    return {"rule_id": asked.rule_id, "four_eyes": standing_rule_from_text(asked.document).four_eyes}


def _probe_json(ended: ProbeEnded) -> dict[str, Any]:
    return {"result": ended.result, "note": ended.note, "wrong": json_value(ended.wrong)}


def problem_item(hold_id: str, problem: Problem) -> dict[str, Any]:
    """A refused decision as an item of a bulk's answer."""
    return {"hold_id": hold_id, **problem.document()}


def reply_item(hold_id: str, reply: Reply) -> dict[str, Any]:
    """A recorded decision as an item of a bulk's answer."""
    return {"hold_id": hold_id, **orjson.loads(reply.body)}


def _check_person(actor: Actor) -> None:
    # The decider checks whether this person may decide, by role, name or delegation; here, only that it is a person.
    if actor.agent is not None:
        raise Problem(Refusal.NOT_AUTHORISED, "an agent's token cannot decide")
