"""A service with names of its own for commands: the same in each of its runs, and before a run has begun."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

from schemas import commands as k
from schemas.actor import Actor
from schemas.ids import execution_key
from tests.simulation.agents import AGENT, STRANGER
from tests.simulation.definitions import PROJECT
from tests.simulation.gateway import Gateway

RUNS = 3


@dataclass
class Service:
    """Proposes in some runs before it starts them, and in each under one command id, for two tenants."""

    gateway: Gateway
    rng: random.Random

    async def run(self) -> None:
        runs = list(product((AGENT, STRANGER), range(RUNS)))
        self.rng.shuffle(runs)
        early = runs[: len(runs) // 2]
        for actor, number in early:
            await self._propose(actor, number)
        for actor, number in runs:
            start = k.StartExecution(agent="bot", request="work")
            await self.gateway.ask("service", _key(actor, number), start, actor, "start")
        for actor, number in runs:
            await self._propose(actor, number)

    async def _propose(self, actor: Actor, number: int) -> None:
        body = k.ProposeToolCall(call_id="c", tool="read_file", arguments="{}", reason=self.rng.choice("ab"))
        await self.gateway.ask("service", _key(actor, number), body, actor, "propose")


def _key(actor: Actor, number: int) -> bytes:
    return execution_key(actor.tenant, PROJECT, f"s{number}")
