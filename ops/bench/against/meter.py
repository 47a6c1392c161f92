"""What a stack's processes use while a load runs, until they are at rest again.

Work that a stack puts off until after its answers (views, statistics, audit heads) is counted with what caused it.
What shows that all of it is done differs between versions, so rest is told by what the processes use.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from ops.bench.load import BenchFailedError
from ops.bench.usage import cpu_ms
from ops.component import KAFKA

WINDOW_S = 0.5
# Of one core, beside the broker; idle stacks use some hundredths.
REST_SHARE = 0.15
REST_WITHIN_S = 120.0
ALL, STACK, LOAD = "all", "stack", "load"


@dataclass(frozen=True, slots=True)
class Processes:
    """A stack's processes: the one that all others descend from, and those of its parts by name."""

    supervisor: int
    parts: Mapping[str, int]

    def cpu_ms(self) -> dict[str, float]:
        """Processor time so far of each part, and of all processes beside the broker (`stack`)."""
        found = cpu_ms({ALL: self.supervisor, **self.parts})
        return {STACK: found.pop(ALL) - found[KAFKA], **found}

    async def until_rested(self) -> None:
        """Return when the stack works on nothing.

        Raises:
            BenchFailedError: it does not come to rest.
        """
        give_up_at = time.monotonic() + REST_WITHIN_S
        while time.monotonic() < give_up_at:
            before = self.cpu_ms()[STACK]
            await asyncio.sleep(WINDOW_S)
            if self.cpu_ms()[STACK] - before <= REST_SHARE * WINDOW_S * 1e3:
                return
        raise BenchFailedError(f"The stack was not at rest within {REST_WITHIN_S:.0f} s.")


@dataclass(frozen=True, slots=True)
class Used:
    """What a load took.

    Attributes:
        took: what the load itself answered.
        cpu: processor time in ms by part, and that of the process that made the load.
    """

    took: float
    cpu: dict[str, float]


async def metered(processes: Processes, work: Awaitable[float]) -> Used:
    """Carry out a work between two rests of the stack."""
    await processes.until_rested()
    before, own = processes.cpu_ms(), time.process_time()
    took = await work
    own = time.process_time() - own
    await processes.until_rested()
    after = processes.cpu_ms()
    return Used(took, {name: after[name] - before[name] for name in before} | {LOAD: own * 1e3})
