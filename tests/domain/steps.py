"""The first steps of most stories about one execution."""

from typing import Any

from schemas import commands as k
from schemas.actor import Actor
from schemas.events.executions import CommandRefused
from schemas.events.holds import DecisionRefused
from schemas.message import Message
from tests.domain.world import BOT, PROJECT, RITA, RULES, TENANT, World, published, the

TESSA = Actor(subject="tessa", tenant=TENANT, project=PROJECT, roles=("reviewer",))


def ask_two(world: World) -> None:
    """From now on every hold asks for two people."""
    rules = [
        {**each, "hold": {**each.get("hold", {}), "quorum": 2}} if each["then"] == "hold" else each
        for each in RULES
    ]
    world.definitions = published(world.definitions, rules)


def started(**changes: Any) -> World:
    """A world with one running execution."""
    world = World(**changes)
    world.ask(k.StartExecution(agent="bot"))
    return world


def proposed(world: World, tool: str, call_id: str = "c", arguments: str = '{"amount":5}') -> list[Message]:
    """The events of a proposal."""
    return world.ask(k.ProposeToolCall(call_id=call_id, tool=tool, arguments=arguments))


def held(world: World, tool: str = "pay", call_id: str = "c") -> Any:
    """A call that waits: its HoldOpened."""
    return the(proposed(world, tool, call_id), "HoldOpened")


def decided(world: World, hold: Any, decision: Any, by: Actor = RITA, **content: Any) -> list[Message]:
    """The events of a decision on exactly what waits."""
    command = k.DecideHold(hold_id=hold.hold_id, decision=decision, digest=hold.digest, **content)
    return world.ask(command, by)


def released(world: World, tool: str = "pay", call_id: str = "c") -> str:
    """A call that a person approved: its digest."""
    hold = held(world, tool, call_id)
    assert the(decided(world, hold, "approve"), "ToolCallReleased").digest == hold.digest
    return str(hold.digest)


def consumed(world: World, digest: str, attempt_id: str = "a", call_id: str = "c") -> list[Message]:
    """The events of a consumption."""
    return world.ask(k.ConsumeGrant(call_id=call_id, digest=digest, attempt_id=attempt_id))


def reported(
    world: World, outcome: Any, attempt_id: str = "a", call_id: str = "c", **content: Any
) -> list[Message]:
    """The events of a result."""
    return world.ask(k.ReportResult(call_id=call_id, attempt_id=attempt_id, outcome=outcome, **content), BOT)


def refusal(bodies: list[Message]) -> CommandRefused | DecisionRefused:
    """The one refusal among events."""
    (refused,) = [body for body in bodies if isinstance(body, CommandRefused | DecisionRefused)]
    return refused


def code(bodies: list[Message]) -> str:
    """The code of the one refusal among events."""
    return refusal(bodies).code
