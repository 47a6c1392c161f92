"""A command that kills the process that decides it, on real processes: how long are its other partitions out?"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ops.checker import check, read_log
from schemas import commands as k
from schemas.record import Event
from services.runtime.rounds import ABANDON_AFTER_DEATHS
from tests.log.logs import PARTITIONS, KafkaWorld
from tests.runtime.deadly import POISON
from tests.runtime.lab import Lab, body_of, types

pytestmark = [pytest.mark.broker]

# One that ends like the second before it is known by then.
KILLED_MAX = 2


@dataclass
class Supervised:
    """A decider that is started again whenever it dies."""

    settings: dict[str, str]
    log: Path
    killed: int = 0
    _process: asyncio.subprocess.Process | None = None
    codes: list[int] = field(default_factory=list)

    async def run(self) -> None:
        try:
            while True:
                with self.log.open("ab") as out:
                    self._process = await asyncio.create_subprocess_exec(
                        sys.executable,
                        "-m",
                        "tests.runtime.deadly",
                        json.dumps(self.settings),
                        stdout=out,
                        stderr=out,
                    )
                self.codes.append(await self._process.wait())
                self.killed += self.codes[-1] == -signal.SIGKILL
        finally:
            if self._process is not None and self._process.returncode is None:
                self._process.terminate()
                await self._process.wait()


@asynccontextmanager
async def supervised(lab: Lab, world: KafkaWorld, tmp_path: Path) -> AsyncIterator[Supervised]:
    keys = tmp_path / "keys"
    keys.mkdir()
    public = base64.b64encode(lab.key.public_key().public_bytes_raw()).decode()
    (keys / "gateways.json").write_text(json.dumps({"gateway-1": public}))
    settings = {
        "data_dir": str(tmp_path),
        "keys_dir": str(keys),
        "bootstrap_servers": world.bootstrap_servers,
        "topic_prefix": world.log.topics.prefix,
        "worker_id": "decider",
        "log_signatures": "off",
    }
    decider = Supervised(settings, tmp_path / "decider.log")
    running = asyncio.create_task(decider.run())
    try:
        yield decider
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def longest_wait_s(lab: Lab, execution_id: str, done: Callable[[], bool]) -> float:
    """The longest that one who asks again and again had to wait for an answer."""
    loop = asyncio.get_running_loop()
    longest_s, number = 0.0, 0
    while not done():
        asked = loop.time()
        number += 1
        name = await lab.send(execution_id, k.PauseExecution(reason=f"n{number}"), lab.olga)
        async with asyncio.timeout(120):
            while name not in {e.meta.command_id for e in await lab.facts(lab.events_tp(execution_id))}:
                await asyncio.sleep(0.05)
        longest_s = max(longest_s, loop.time() - asked)
    return longest_s


async def test_case_25_command_that_kills_processes_kills_two_and_is_then_tried_in_a_child(
    kafka_log_world: KafkaWorld, tmp_path: Path, seed: int
) -> None:
    lab = Lab(kafka_log_world.log, PARTITIONS, random.Random(seed))
    poisoned, other = lab.execution_on(0), lab.execution_on(1)
    async with supervised(lab, kafka_log_world, tmp_path) as decider:
        for name in (poisoned, other):
            await lab.send(name, k.StartExecution(agent="bot"))
        begun = await lab.send(other, k.PauseExecution(), lab.olga)
        async with asyncio.timeout(60):
            while begun not in {e.meta.command_id for e in await lab.facts(lab.events_tp(other))}:
                await asyncio.sleep(0.05)
        poison = await lab.send(poisoned, k.PauseExecution(reason=POISON), lab.olga)
        after = await lab.send(poisoned, k.PauseExecution(reason="after"), lab.olga)
        answered = asyncio.create_task(trace(lab, poisoned, after))
        out_s = await longest_wait_s(lab, other, answered.done)

        assert types(await answered) == ["ExecutionPaused"]
        abandoned = body_of(await trace(lab, poisoned, poison), "CommandAbandoned")
        print(f"killed {decider.killed}, others waited {out_s:.1f} s")
        assert abandoned.attempts == ABANDON_AFTER_DEATHS
        assert decider.killed == KILLED_MAX, decider.log.read_text()
        assert abandoned.trials > 0
    assert check(await read_log(lab.log), topics=lab.log.topics) == []


async def trace(lab: Lab, execution_id: str, name: str) -> list[Event]:
    async with asyncio.timeout(150):
        while not (
            found := [e for e in await lab.facts(lab.events_tp(execution_id)) if e.meta.command_id == name]
        ):
            await asyncio.sleep(0.05)
    return found
