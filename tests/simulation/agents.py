"""Agents: they propose, wait, consume with a fresh attempt, run, report, and die anywhere in between."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import call_digest, canonical
from schemas.ids import derived_id, execution_key
from schemas.message import Message
from schemas.record import Event
from tests.simulation.definitions import PAIRED, PROJECT, TENANT, TOOLS, UNPUBLISHED
from tests.simulation.gateway import Gateway, Seen
from tests.simulation.turns_seen import ConversationSeen

PATIENCE_S = 70.0
IMPATIENCE_S = 5.0
AGENT = Actor(subject="bot", tenant=TENANT, project=PROJECT, roles=("agent",), agent="bot")
# Another account of the same agent: it can read off every attempt's id.
RIVAL = AGENT.model_copy(update={"subject": "rival"})
# The same names in another tenant: nothing of acme may ever be theirs.
STRANGER = AGENT.model_copy(update={"tenant": "evil"})


@dataclass
class Agent:
    """One run of an agent, with its own execution; where `payments` says how many, it only calls `pays`."""

    execution_id: str
    gateway: Gateway
    other_gateway: Gateway
    rng: random.Random
    effects: Counter[str]
    seed: int = 0
    payments: int = 0
    pays: str = "send_money"
    asked: int = 0
    ran: set[tuple[str, str]] = field(default_factory=set)
    races: random.Random = field(init=False)
    lies: random.Random = field(init=False)
    returns: random.Random = field(init=False)
    hurry: random.Random = field(init=False)

    def __post_init__(self) -> None:
        # Of its own, so that whether two of its processes race shifts nothing else in a world.
        self.races = random.Random(f"races {self.seed} {self.execution_id}")
        self.lies = random.Random(f"lies {self.seed} {self.execution_id}")
        self.returns = random.Random(f"returns {self.seed} {self.execution_id}")
        self.hurry = random.Random(f"hurry {self.seed} {self.execution_id}")

    @property
    def key(self) -> bytes:
        return execution_key(TENANT, PROJECT, self.execution_id)

    @property
    def conversation(self) -> ConversationSeen:
        """The run's messages and turns, as its gateway has seen them."""
        return self.gateway.conversations[self.key]

    async def run(self) -> None:
        await self.ask(k.StartExecution(agent="bot", request="work"))
        names = [f"c{i}" for i in range(self.payments or self.rng.randint(1, 4))]
        if self.rng.random() < 0.5:
            await asyncio.gather(*(self._call(name) for name in names))
        else:
            for name in names:
                await self._call(name)
        await self._end()

    async def _end(self) -> None:
        endings: list[Message | None] = [k.CompleteExecution(), k.FailExecution(error="tired"), None]
        if (ending := self.rng.choice(endings)) is not None:
            await self.ask(ending)
            if self.rng.random() < 0.3:
                await self.ask(k.StartExecution(agent="bot", request="once more"))

    async def _call(self, call_id: str) -> None:
        usual = (*TOOLS, UNPUBLISHED, PAIRED, PAIRED, PAIRED, "send_money", "move_stock")
        name = self.pays if self.payments else self.rng.choice(usual)
        arguments = canonical({"amount": self.rng.randint(1, 99), "to": call_id})
        proposal = k.ProposeToolCall(call_id=call_id, tool=name, arguments=arguments)
        if not self.payments and self.hurry.random() < 0.2:
            if await self._run_at_once(proposal):
                return
        else:
            await self.ask(proposal, call_id=call_id)
        if self.rng.random() < 0.15:
            await self._misbehave(call_id, proposal)
        for _ in range(self.rng.randint(1, 3)):
            if not await self._until_released(call_id):
                return
            if await self.attempt(call_id):
                return

    async def _run_at_once(self, proposal: k.ProposeToolCall) -> bool:
        """Propose with the attempt that would run it: whether the call is done with."""
        attempt_id, call_id = derived_id("prompt", self.hurry.random()), proposal.call_id
        named = proposal.model_copy(update={"attempt_id": attempt_id})
        trace = await self.ask(named, call_id=call_id, attempt_id=attempt_id)
        released = self.gateway.seen(self.key, call_id).events.get("ToolCallReleased")
        if released is None or not any(_is_grant(event, attempt_id) for event in trace):
            return False
        if self.hurry.random() < 0.1:
            return False
        self._effect(call_id, released.body, attempt_id)
        if self.hurry.random() < 0.15:
            return self.hurry.random() < 0.3
        await self._report(call_id, attempt_id)
        return True

    async def _until_released(self, call_id: str) -> bool:
        seen = self.gateway.seen(self.key, call_id)
        if seen.last == "GrantConsumed" and self.returns.random() < 0.4:
            return await self._until_left(seen)
        settled = ("ToolCallReleased", "ToolCallDenied", "ToolCallCancelled", "GrantRevoked")
        # Another process of the agent does not wait until the run of the one that died is given up.
        patience_s = IMPATIENCE_S if seen.last == "GrantConsumed" else PATIENCE_S
        await self.gateway.until(lambda: seen.last in settled, patience_s)
        return seen.last == "ToolCallReleased" or (seen.last == "GrantConsumed" and self.rng.random() < 0.5)

    async def _until_left(self, seen: Seen) -> bool:
        """Another process comes once the run of the one that died is given up, while a person is asked."""
        left = ("ToolCallOutcomeUnknown", "HoldOpened")
        await self.gateway.until(lambda: seen.last != "GrantConsumed", PATIENCE_S)
        return seen.last in (*left, "ToolCallReleased")

    async def attempt(self, call_id: str) -> bool:
        """One process that tries to run the call: whether it is done with it. It may die at any point."""
        released = self.gateway.seen(self.key, call_id).events.get("ToolCallReleased")
        if released is None:
            return True
        body: Any = released.body
        attempt_id = derived_id("attempt", self.rng.random())
        if self.rng.random() < 0.1:
            await asyncio.sleep(self.rng.uniform(0.0, 80.0))
        # Now and then it asks for something else than what was released.
        digest = body.digest if self.rng.random() < 0.9 else derived_id("other", body.digest)
        command = k.ConsumeGrant(call_id=call_id, digest=digest, attempt_id=attempt_id)
        if not self.payments and self.races.random() < 0.08:
            attempt_id, trace = await self._race(command)
        else:
            trace = await self.ask(command, call_id=call_id, digest=digest, attempt_id=attempt_id)
        if not any(_is_grant(event, attempt_id) for event in trace):
            return self.rng.random() < 0.3
        if self.rng.random() < 0.1:
            return False
        self._effect(call_id, body, attempt_id)
        if self.rng.random() < 0.15:
            return self.rng.random() < 0.3
        await self._report(call_id, attempt_id)
        return True

    async def _race(self, command: k.ConsumeGrant) -> tuple[str, list[Event]]:
        """Two processes that take the same id for their consumptions, through two gateways: the winner's answer."""
        rival = command.model_copy(update={"attempt_id": derived_id("rival", self.races.random())})
        self.asked += 1
        command_id = derived_id("race", self.execution_id, self.asked, self.races.random())
        traces = await asyncio.gather(
            *(
                gateway.ask(
                    self.execution_id,
                    self.key,
                    each,
                    AGENT,
                    command_id,
                    call_id=each.call_id,
                    digest=each.digest,
                    attempt_id=each.attempt_id,
                )
                for gateway, each in ((self.gateway, command), (self.other_gateway, rival))
            )
        )
        attempts = (command.attempt_id, rival.attempt_id)
        won = [
            (attempt_id, trace)
            for attempt_id, trace in zip(attempts, traces, strict=True)
            if any(_is_grant(event, attempt_id) for event in trace)
        ]
        for attempt_id, _ in won[1:]:
            body: Any = self.gateway.seen(self.key, command.call_id).events["ToolCallReleased"].body
            self._effect(command.call_id, body, attempt_id)
        return won[0] if won else (command.attempt_id, traces[0])

    def _effect(self, call_id: str, released: Any, attempt_id: str) -> None:
        """The tool runs, with exactly the arguments that were released."""
        proposed: Any = self.gateway.seen(self.key, call_id).events["ToolCallProposed"].body
        version = proposed.tool_version
        digest = call_digest(TENANT, "bot", proposed.tool, version, released.arguments)
        where = self.gateway.where(self.key)
        self.effects[proposed.tool] += 1
        self.gateway.history.add(
            self.execution_id, "effect", call_id=call_id, digest=digest, attempt_id=attempt_id, **where
        )

    async def _report(self, call_id: str, attempt_id: str) -> None:
        await asyncio.sleep(self.rng.uniform(0.0, 3.0))
        outcome = self.rng.choice(("succeeded", "succeeded", "failed", "unknown"))
        report = k.ReportResult(call_id=call_id, attempt_id=attempt_id, outcome=outcome)
        if not self.payments and self.lies.random() < 0.08:
            lie = report.model_copy(update={"outcome": "failed", "error": "never ran"})
            await self.ask(lie, RIVAL, call_id=call_id)
        await self.ask(report, call_id=call_id, attempt_id=attempt_id)

    async def _misbehave(self, call_id: str, proposal: k.ProposeToolCall) -> None:
        """What an agent must not get away with."""
        choice = self.rng.randrange(5)
        if choice == 0:
            await self.ask(proposal.model_copy(update={"arguments": '{"amount":1000000}'}), call_id=call_id)
        elif choice == 1:
            await self.ask(
                k.ConsumeGrant(call_id=call_id, digest="0" * 64, attempt_id="early"), call_id=call_id
            )
        elif choice == 2:
            await self._decide_itself(call_id)
        else:
            bodies: list[Message] = [proposal.model_copy(update={"call_id": "stolen"}), k.CompleteExecution()]
            await self.ask(self.rng.choice(bodies), actor=STRANGER)

    async def _decide_itself(self, call_id: str) -> None:
        opened = self.gateway.seen(self.key, call_id).events.get("HoldOpened")
        if opened is not None:
            hold: Any = opened.body
            await self.ask(k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest))

    async def ask(self, body: Message, actor: Actor = AGENT, **noted: Any) -> list[Event]:
        """Ask something of its run, under a command id of its own."""
        self.asked += 1
        command_id = derived_id("ask", self.execution_id, self.asked, self.rng.random())
        return await self.gateway.ask(self.execution_id, self.key, body, actor, command_id, **noted)


def _is_grant(event: Event, attempt_id: str) -> bool:
    body: Any = event.body
    return event.type == "GrantConsumed" and bool(body.attempt_id == attempt_id)
