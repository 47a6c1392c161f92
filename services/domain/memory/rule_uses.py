"""The uses of one standing rule with a limit, counted in one place for all executions: under the rule's own key.

A reservation is requested until it is answered, so it may be requested twice; it has one answer.
"""

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from schemas.actor import Actor
from schemas.commands import ReserveRuleUse
from schemas.events.executions import CommandRefused
from schemas.events.rules import RuleUseRefused, RuleUseReserved
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.memory.standing_rules import StandingRule

# The answer if the rule has no use left: it need not be requested again.
USED_UP = "all uses of the rule are taken"


class Use(Struct, frozen=True):
    """The answer to one reservation. `number` is the number of the use, 0 if it was refused."""

    execution_id: str
    call_id: str
    revision: int
    number: int
    detail: str


class RuleUses(Struct, frozen=True):
    """The answers to all reservations of one rule; `taken` is the number of uses taken."""

    uses: Map[str, Use] = Map()
    taken: int = 0


def decide(
    state: RuleUses, rule: StandingRule | None, command: Message, actor: Actor, now_ms: int
) -> list[Message]:
    """The events of a command about the uses of a rule; `rule` is the rule by the definitions in force here."""
    if not isinstance(command, ReserveRuleUse) or actor.roles != ("system",):
        return [
            _refused(command, actor, Refusal.NOT_AUTHORISED, "only a decider can request a use of a rule")
        ]
    if command.reservation_id in state.uses:
        return [_refused(command, actor, Refusal.DUPLICATE, "answered already", command.reservation_id)]
    asked = command.model_dump(include={"rule_id", "reservation_id", "execution_id", "call_id", "revision"})
    if (detail := _problem(state, rule, actor, now_ms)) is not None:
        return [RuleUseRefused(**asked, detail=detail)]
    return [RuleUseReserved(**asked, digest=command.digest, number=state.taken + 1)]


def evolve(state: RuleUses, event: Message) -> RuleUses:
    """The uses after an event; refusals of commands change nothing."""
    if isinstance(event, RuleUseReserved):
        use = Use(event.execution_id, event.call_id, event.revision, event.number, "")
        return replace(state, uses=state.uses.set(event.reservation_id, use), taken=state.taken + 1)
    if isinstance(event, RuleUseRefused):
        use = Use(event.execution_id, event.call_id, event.revision, 0, event.detail)
        return replace(state, uses=state.uses.set(event.reservation_id, use))
    return state


def _problem(state: RuleUses, rule: StandingRule | None, actor: Actor, now_ms: int) -> str | None:
    if rule is None or rule.document.project != actor.project:
        return "this standing rule does not exist here"
    if rule.status != "active":
        return f"the rule is {rule.status}"
    if now_ms >= rule.document.expires_at_ms:
        return "the rule has expired"
    limit = rule.document.uses
    return USED_UP if limit is not None and state.taken >= limit else None


def _refused(
    command: Message, actor: Actor, code: Refusal, detail: str, subject_id: str = ""
) -> CommandRefused:
    return CommandRefused(
        code=code, command=type(command).__name__, subject_id=subject_id, detail=detail, by=actor.subject
    )
