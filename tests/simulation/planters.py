"""Planters: operators who plant known-bad calls, and what agents and others then try with them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.ids import execution_key
from schemas.message import Message
from schemas.record import Event
from tests.simulation.agents import AGENT
from tests.simulation.definitions import OPERATOR, PAIRED, PROJECT, TENANT, UNPUBLISHED
from tests.simulation.gateway import Gateway

PLANTED_TOOLS = ("send_money", "move_stock", "wire_funds", "halt_plant", "read_file", PAIRED, UNPUBLISHED)


@dataclass
class Planter:
    """Plants a call now and then; somebody may then pause, end or use its run as if it were the agent's own."""

    gateway: Gateway
    rng: random.Random
    keys: list[bytes] = field(default_factory=list)
    asked: int = 0

    async def run(self) -> None:
        """Plant some call now and then, for ever."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 4.0))
            await self._plant()

    async def _plant(self) -> None:
        key = execution_key(TENANT, PROJECT, f"planted-{len(self.keys)}")
        self.keys.append(key)
        plant = k.PlantProbe(
            agent="bot",
            call_id="c0",
            tool=self.rng.choice(PLANTED_TOOLS),
            arguments=canonical({"amount": self.rng.randint(1, 99), "to": "mallory"}),
            note="nobody owes this",
            wrong=self.rng.choice(("[]", '["/amount"]', '["/to"]')),
        )
        if self.rng.random() < 0.5:
            # Its run is opened some time before.
            await self._ask(key, plant.model_copy(update={"only_opens": True}), OPERATOR)
            await asyncio.sleep(self.rng.uniform(0.0, 8.0))
        trace = await self._ask(key, plant, OPERATOR)
        for event in trace:
            if event.type == "HoldOpened":
                await self._meddle(key, event.body)

    async def _meddle(self, key: bytes, hold: Any) -> None:
        choice = self.rng.random()
        if choice < 0.2:
            await self._ask(key, k.PauseExecution(), OPERATOR)
            await asyncio.sleep(self.rng.uniform(0.0, 5.0))
            await self._ask(key, k.ResumeExecution(), OPERATOR)
        elif choice < 0.3:
            await self._ask(key, k.CancelExecution(), OPERATOR)
        elif choice < 0.5:
            own = k.ProposeToolCall(call_id="own", tool="send_money", arguments='{"amount":1}')
            await self._ask(key, own, AGENT)
        elif choice < 0.8:
            await asyncio.sleep(self.rng.uniform(0.0, 10.0))
            await self._ask(
                key, k.ConsumeGrant(call_id="c0", digest=hold.digest, attempt_id="planted"), AGENT
            )

    async def _ask(self, key: bytes, body: Message, actor: Actor) -> list[Event]:
        self.asked += 1
        return await self.gateway.ask("planter", key, body, actor, f"planter-{self.asked}")
