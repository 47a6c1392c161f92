"""Runs whose approvals are remembered as standing rules."""

import json
from typing import Any

from schemas import commands as k
from schemas.actor import Actor, decider_actor
from schemas.canonical import canonical
from schemas.events.rules import RuleMade
from schemas.message import Message
from services.domain.publishing import evolve
from tests.domain.world import (
    PAY_SCHEMA,
    PROJECT,
    RITA,
    RULES,
    TENANT,
    World,
    published,
    rule,
    the,
)

DECIDER = decider_actor(TENANT, PROJECT)
RUDI = RITA.model_copy(update={"subject": "rudi"})
DAY_S = 24 * 60 * 60
GB = {"amount": 100, "to": "GB29"}
# A call of high risk is never remembered, and what destroys is of high risk.
MILD = [
    {"name": name, "inputSchema": PAY_SCHEMA, "annotations": {"destructiveHint": False}}
    for name in ("pay", "transfer")
]


def plain(**remember: Any) -> list[dict[str, Any]]:
    """The world's rules, with one for payments that lets a rule be made by one person."""
    free = rule("payments", "pay", "hold", remember={"four_eyes": False, **remember})
    return [free if found["id"] == "payments" else found for found in RULES]


def world(rules: list[dict[str, Any]] | None = None) -> World:
    made = World()
    made.definitions = published(made.definitions, plain() if rules is None else rules, MILD)
    made.ask(k.StartExecution(agent="bot"))
    return made


def pay(made: World, call_id: str, arguments: dict[str, Any] = GB, tool: str = "pay") -> list[Message]:
    return made.ask(k.ProposeToolCall(call_id=call_id, tool=tool, arguments=canonical(arguments)))


def decide(
    made: World, events: list[Message], decision: str = "approve", actor: Actor = RITA, **content: Any
) -> Any:
    hold = the(events, "HoldOpened")
    if "remember" in content:
        content["remember"] = json.dumps(content["remember"])
    command = k.DecideHold(hold_id=hold.hold_id, decision=decision, digest=hold.digest, **content)
    return made.ask(command, actor)


def publish(made: World, event: Message) -> None:
    made.definitions = evolve(made.definitions, event, TENANT, made.definitions.through_offset + 1)


def make(made: World, asked: Any, status: str = "active") -> str:
    """Let the definitions show the rule that a decision asks for."""
    publish(
        made,
        RuleMade(rule_id=asked.rule_id, status=status, reason="", document=asked.document, by="rita"),
    )
    return str(asked.rule_id)


def ruled(made: World, arguments: dict[str, Any] = GB, **remember: Any) -> str:
    """A rule in force, made of the approval of a first call."""
    events = decide(made, pay(made, "first", arguments), scope="rule", remember={"uses": None, **remember})
    return make(made, the(events, "RuleAsked"))


def unlimited(**remember: Any) -> World:
    return world(plain(max_uses="unlimited", **remember))


def settle(made: World, asked: Any, granted: bool, detail: str = "") -> list[Message]:
    command = k.SettleReservation(
        call_id=asked.call_id,
        revision=asked.revision,
        reservation_id=asked.reservation_id,
        granted=granted,
        number=int(granted),
        detail=detail,
    )
    return made.ask(command, DECIDER)


def refusal(events: list[Message]) -> Any:
    (refused,) = events
    return refused
