"""Conversations: people write to an agent, several clients at once, and workers answer in turns."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from schemas import commands as k
from schemas import conversation_commands as t
from schemas.actor import Actor
from schemas.ids import execution_key
from tests.simulation.agents import AGENT, RIVAL, STRANGER, Agent
from tests.simulation.definitions import OPERATOR, PROJECT, TENANT
from tests.simulation.gateway import Gateway
from tests.simulation.people import RITA
from tests.simulation.turn_work import TurnWorker
from tests.simulation.turns_seen import ConversationSeen

# Ids are few, so that clients repeat their own messages and each other's.
IDS = 9
MESSAGES = 9
IDLE_MS = (None, None, 20_000)
# Has no role that lets write to an agent.
READER = Actor(subject="uma", tenant=TENANT, project=PROJECT, roles=("analyst",))


@dataclass
class Client:
    """Somebody who writes to an agent now and then, whether its run has ended, is paused, or has too many turns."""

    actor: Actor
    agent: Agent
    rng: random.Random
    calm: asyncio.Event

    async def run(self) -> None:
        """Send some messages, the last of them early enough to be answered."""
        for _ in range(MESSAGES):
            await asyncio.sleep(self.rng.uniform(0.0, 13.0))
            if self.calm.is_set():
                return
            turn_id = f"m{self.rng.randrange(IDS)}"
            # Most of the time it is the message that was sent under this id before.
            text = self.rng.choice(("hello", "hello", "hello", "good-bye"))
            actor = self.rng.choice((STRANGER, READER)) if self.rng.random() < 0.06 else self.actor
            await self.agent.ask(t.SendMessage(turn_id=turn_id, text=text), actor)
            if self.rng.random() < 0.07:
                await self.agent.ask(k.PauseExecution(), self.actor)
                await asyncio.sleep(self.rng.uniform(0.0, 8.0))
                await self.agent.ask(k.ResumeExecution(), self.actor)


@dataclass
class Conversation:
    """One execution with its clients and workers, each at a gateway with random choices of its own."""

    execution_id: str
    gateways: Sequence[Gateway]
    effects: Counter[str]
    name: str

    @property
    def key(self) -> bytes:
        """The execution's key."""
        return execution_key(TENANT, PROJECT, self.execution_id)

    def tasks(self, calm: asyncio.Event) -> list[Coroutine[None, None, None]]:
        """All that go on until they are cancelled; once it is calm, workers answer without any detour."""
        for gateway in self.gateways:
            gateway.conversations[self.key] = ConversationSeen()
        clients = [
            Client(actor, self._reached(f"client {i}", i), random.Random(f"client {i} {self.name}"), calm)
            for i, actor in enumerate((RITA, OPERATOR))
        ]
        workers = [
            TurnWorker(actor, self._reached(f"worker {i}", i), random.Random(f"worker {i} {self.name}"), calm)
            for i, actor in enumerate((AGENT, RIVAL, AGENT))
        ]
        return [self._start(), *(each.run() for each in clients), *(each.run() for each in workers)]

    async def _start(self) -> None:
        idle_ms = random.Random(f"idle {self.name}").choice(IDLE_MS)
        await self._reached("start", 0).ask(k.StartExecution(agent="bot", request="talk", idle_ms=idle_ms))

    def _reached(self, by: str, number: int) -> Agent:
        rng = random.Random(f"{by} {self.name} asks")
        one, other = self.gateways[number % 2], self.gateways[1 - number % 2]
        return Agent(self.execution_id, one, other, rng, self.effects, rng.randrange(1 << 30))
