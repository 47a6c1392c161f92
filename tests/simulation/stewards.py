"""Stewards: people who activate, suspend and revoke standing rules, whether they may or not."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from log.errors import LogUnreachable
from log.places import TopicPartition
from schemas import commands as k
from schemas.actor import Actor
from schemas.envelope import Draft
from schemas.ids import definition_key
from schemas.standing_rule import RULE_KIND
from tests.simulation.gateway import Gateway

# Rules are let be used more often than they are stopped.
CHANGES = (*[k.ActivateRule] * 8, *[k.SuspendRule] * 3, k.RevokeRule)


@dataclass
class Steward:
    """Looks now and then at a rule that somebody asked for."""

    actor: Actor
    gateway: Gateway
    rng: random.Random

    async def run(self) -> None:
        """Change some rule now and then, for ever."""
        number = 0
        while True:
            await asyncio.sleep(self.rng.uniform(2.0, 10.0))
            if self.gateway.rules:
                number += 1
                await self._change(self.rng.choice(self.gateway.rules), f"{self.actor.subject}-{number}")

    async def _change(self, rule_id: str, command_id: str) -> None:
        body = self.rng.choice(CHANGES)(rule_id=rule_id)
        key = definition_key(self.actor.tenant, RULE_KIND, rule_id)
        draft = Draft(body, self.actor, command_id, key)
        tp = TopicPartition(self.gateway.reached.topics.definition_commands, 0)
        try:
            await self.gateway.reached.send(tp, self.gateway.signer.sign([draft])[0])
        except LogUnreachable:
            # Nobody waits for it: the next change is another command.
            return
