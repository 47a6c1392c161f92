"""A world whose trust is counted from its own events, as the trust role does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schemas import commands as k
from schemas.call_history import CallHistory, history_from_text
from schemas.canonical import canonical
from schemas.ids import split_execution_key
from schemas.trust import UNCLASSED, ClassPart
from schemas.trust_family import closes
from schemas.trust_score import CONTRARY
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import Evidence, combine, count_in_class
from services.processors.attribution import OpenCalls
from tests.domain.steps import decided, started
from tests.domain.trusting import outcome
from tests.domain.world import World, published, the

HARMLESS = {"destructiveHint": False, "openWorldHint": False, "idempotentHint": True}
# Enough for a class of known values, of new ones, and of those beside a contrary fact.
ENOUGH, ENOUGH_OF_NEW = 15, 60


def word(number: int) -> str:
    """A word for each number, without a digit: classes tell great numbers in names from small ones."""
    letters = str(number).translate(str.maketrans("0123456789", "abcdefghij"))
    return f"word{letters}"


class Counted:
    """The parts of all classes; `is_late` leaves what is decided from now on uncounted."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.is_late = False
        # From the number of an event to its offset in a log, where that has other records, too.
        self.offset_of: Callable[[int], int] = int
        self._parts: dict[tuple[str, ...], ClassPart] = {}
        self._calls = OpenCalls()
        self._next = 0

    def __call__(self, *names: str) -> KnownTrust:
        self._count()
        *place, trust_class = names
        of_tool = tuple(part for key, part in self._parts.items() if key[:-1] == tuple(place))
        return KnownTrust(
            combine(()),
            tuple(part for part in of_tool if part.trust_class == trust_class),
            {0: self.offset_of(self._next - 1) if self._next else -1},
            of_tool,
            tuple(
                part
                for part in of_tool
                if part.trust_class != trust_class and closes(part.trust_class, trust_class)
            ),
        )

    def _count(self) -> None:
        assert self.world is not None
        if self.is_late:
            return
        for event in self.world.events[self._next :]:
            found = self._calls.follow(event)
            if found is None or found.fact is None:
                continue
            call = found.call
            if not call.trust_class:
                if found.fact not in CONTRARY:
                    continue
                call = call._replace(trust_class=UNCLASSED)
            _, project, _ = split_execution_key(event.key)
            key = (event.meta.tenant, project, call.agent, call.tool, call.trust_class)
            evidence = Evidence(
                *key[:4],
                kind=found.kind,
                at_ms=event.meta.at_ms,
                partition=0,
                offset=self.offset_of(event.offset),
                record_id=event.meta.event_id,
                term=0,
                topic_id="t",
                trust_class=call.trust_class,
                fact=found.fact,
                by=found.by,
                requester=call.requester,
                history=call.history,
            )
            self._parts[key] = count_in_class(self._parts.get(key), evidence)
        self._next = len(self.world.events)


def learning(schema: dict[str, Any] | None = None, tool: str = "send", **more: Any) -> tuple[World, Counted]:
    """A world with one harmless tool, whose calls people are asked about until trust releases them."""
    counted = Counted()
    definition = {"name": tool, "inputSchema": schema or {"type": "object"}, "annotations": HARMLESS} | more
    rules = [{"id": "asks", "match": {"tools": [tool]}, "then": "hold"}]
    definitions = published(
        Definitions(policies=PolicySet()), rules, [definition], adaptive={"sample_rate": 0}
    )
    world = started(definitions=definitions, trust=counted, seed="00" * 16)
    counted.world = world
    return world, counted


def propose(world: World, arguments: dict[str, Any], **more: Any) -> list[Any]:
    """The events of a proposal of the world's tool."""
    (tool,) = [name for _, _, name in world.definitions.tools]
    command = k.ProposeToolCall(
        call_id=f"c{len(world.events)}", tool=tool, arguments=canonical(arguments), **more
    )
    return world.ask(command)


def answer(world: World, decision: Any, arguments: dict[str, Any], times: int = 1, **more: Any) -> None:
    """People answer so to calls that are asked about."""
    for _ in range(times):
        bodies = propose(world, arguments, **more)
        if outcome(bodies).result == "released":
            # Enough is known: the agent gives it up.
            continue
        decided(world, the(bodies, "HoldOpened"), decision)


def history(bodies: list[Any]) -> CallHistory:
    """What the verdict says of the past of the call's values."""
    return history_from_text(the(bodies, "PolicyVerdictIssued").history)


def is_released(world: World, arguments: dict[str, Any], **more: Any) -> bool:
    """True if trust releases such a call."""
    return outcome(propose(world, arguments, **more)).result == "released"


def held_although_trusted(world: World, arguments: dict[str, Any]) -> Any:
    """The hold of a call that trust would release: proposed while the policy has no adaptive block."""
    rules = [{"id": "asks", "match": {"tools": ["send"]}, "then": "hold"}]
    world.definitions = published(world.definitions, rules)
    hold = the(propose(world, arguments), "HoldOpened")
    world.definitions = published(world.definitions, rules, adaptive={"sample_rate": 0})
    return hold
