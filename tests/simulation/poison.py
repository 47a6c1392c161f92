"""Poison: commands of which whoever decides them dies, by an exception or as a whole process (SIGKILL).

No production code knows of it: in a world with poison, deciding alone is wrapped. What a killed process knew is
gone, so here the log must tell when enough have died.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest.mock import patch

from ops.checker import Violation
from schemas import commands as k
from schemas.ids import derived_id
from schemas.record import RawRecord
from services.runtime.rounds import Round, Rounds
from tests.simulation.definitions import OPERATOR
from tests.simulation.gateway import Gateway
from tests.simulation.workers import RUNS_ON

POISON = b"poison"
KILLS = b"poison that kills"
# Three in a batch, where the first had made progress before; six alone, where three processes took turns; a zombie.
DEATHS_MAX = 10


@dataclass
class Poisoner:
    """Somebody who sends a deadly command now and then."""

    gateway: Gateway
    rng: random.Random
    sent: int = 0

    async def run(self, keys: list[bytes]) -> None:
        """Poison one run after the other, for ever."""
        while True:
            await asyncio.sleep(self.rng.uniform(5.0, 40.0))
            reason = self.rng.choice((POISON, KILLS)).decode()
            self.sent += 1
            command_id = derived_id("poison", self.sent)
            key = self.rng.choice(keys)
            await self.gateway.ask("olga", key, k.PauseExecution(reason=reason), OPERATOR, command_id)


@dataclass
class Deaths:
    """How often writers of one world died of which command."""

    of: Counter[tuple[int, int]] = field(default_factory=Counter)

    def violations(self) -> list[Violation]:
        """A poison must come to its end."""
        return [
            Violation("I12", f"commands {partition}@{offset}", f"{times} writers died of one command")
            for (partition, offset), times in self.of.items()
            if times > DEATHS_MAX
        ]


@contextlib.contextmanager
def deadly() -> Iterator[Deaths]:
    """Let writers die of poison."""
    deaths, decide_one = Deaths(), Rounds.decide_one

    def dies(self: Rounds, round_: Round, raw: RawRecord) -> None:
        if POISON in raw.value:
            deaths.of[raw.partition, raw.offset] += 1
            if KILLS in raw.value and (machine := RUNS_ON.get()):
                machine.crash()
            raise RuntimeError("this command kills its writer")
        decide_one(self, round_, raw)

    with patch.object(Rounds, "decide_one", dies):
        yield deaths


def is_poison(raw: RawRecord) -> bool:
    """Whether a command is one of which writers die."""
    return POISON in raw.value
