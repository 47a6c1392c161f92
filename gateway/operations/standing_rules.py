"""Standing rules: activated by a second person, suspended and revoked by anyone who can decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway.actions.standing_rules import VERBS
from gateway.asking.asker import name_of
from gateway.live.outcome import Outcome
from gateway.operations.definitions import adoption, adoption_reply
from gateway.operations.plan import Gate, Given, Plan, Reply, ask_again, definition_ask, never
from gateway.problems import Problem, not_found
from projections.folds.standing_rules import standing_rule_json
from projections.tables.standing_rules import StandingRuleRow
from schemas.actor import Actor
from schemas.ids import definition_key, is_client_id
from schemas.refusals import Refusal
from schemas.standing_rule import RULE_KIND
from schemas.token import Claims

Used = Callable[[StandingRuleRow], Awaitable[int | None]]
# A running decider of the definitions makes a requested rule within this time.
MADE_WAIT_S = 2.0
_VERBS = {verb.name: verb for verb in VERBS}


async def rule_row(gate: Gate, actor: Actor, rule_id: str) -> StandingRuleRow:
    """Return the row of a rule in the actor's project.

    Raises:
        Problem: 404 not_found; 503, the log is not read to its end in time, or the rule is being made.
    """
    definitions, name = gate.live.definitions, (actor.tenant, rule_id)
    asked = (actor.tenant, actor.project, rule_id)
    if name not in definitions.standing:
        await gate.reader.all_caught_up()
        # The answer to the decision contains the rule's id; the rule is appended to the definitions a moment later.
        if not await gate.live.until(lambda: asked not in definitions.asked, MADE_WAIT_S):
            raise Problem(Refusal.UNAVAILABLE, "this rule is being made: try again", retry_after=1)
    row: StandingRuleRow | None = definitions.standing.get(name)
    if row is None or row["project"] != actor.project:
        raise not_found("standing rule")
    return row


async def plan_change(
    gate: Gate, claims: Claims, rule_id: str, change: str, given: Given, key: str | None, used: Used
) -> Plan:
    """Activate, suspend or revoke a rule: 200 when every partition has adopted it, 202 with those that have not yet.

    Args:
        gate: the services of the gateway.
        claims: the caller's; the decider checks their permissions.
        rule_id: the rule.
        change: the name of one of the verbs.
        given: the body.
        key: its idempotency key.
        used: returns how many uses of the rule were given out, for the answer.

    Raises:
        Problem: the token does not permit it, the body is invalid, the rule does not exist, or it cannot be read now.
    """
    actor = claims.actor
    if actor.agent is not None:
        raise Problem(Refusal.NOT_AUTHORISED, "standing rules are for people to decide")
    if not is_client_id(rule_id):
        raise not_found("standing rule")
    given_out = await used(await rule_row(gate, actor, rule_id))
    command = _VERBS[change].asked(rule_id, given)
    name = name_of(actor, f"/v1/standing-rules/{rule_id}/{change}", key)

    async def deliver(_: None, outcome: Outcome) -> Reply:
        rule = await rule_row(gate, actor, rule_id)
        shown = standing_rule_json(rule, given_out)
        return adoption_reply(gate, shown | await adoption(gate, rule["log_offset"]))

    ask = definition_ask(gate, definition_key(actor.tenant, RULE_KIND, rule_id), command, actor, name)
    return Plan(ask, None, never, ask_again("the decider has not answered yet: try again"), deliver=deliver)
