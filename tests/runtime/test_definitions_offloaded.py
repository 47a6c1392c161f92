"""Definitions are compiled beside the event loop: whoever writes one that takes long takes nobody else's time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from log.memory.log import MemoryLog
from schemas import commands as k
from schemas import linear_patterns
from schemas.linear_patterns import bounded_size, glob_size
from schemas.policy_document import policy_from_value
from schemas.policy_size import size_problems
from schemas.topics import Topics
from services.domain.policy import cel, compiled, sql
from services.domain.policy.programs import MATCHES_MAX, TOOLS_MAX, program_problems
from services.runtime.offloading import on_thread
from tests.runtime.lab import Lab, types

START_MS = 1_780_000_000_000
BEAT_S = 0.002
# The loop comes back 35 times or more while a thread compiles beside it, and six where it compiles itself. How late
# it comes back once is as much the machine's doing.
TURNS = 15


def forget() -> None:
    """Compile as a decider does that never saw any of it."""
    for cached in (
        bounded_size,
        linear_patterns.glob_matcher,
        linear_patterns._glob_program,
        cel.compile_expression,
        compiled._compiled_rules,
        sql.sql_kind,
    ):
        cached.cache_clear()


def worst_policy() -> dict[str, Any]:
    """As much of each kind of work as a policy may ask for, of everything that compiling it is."""
    conditions = [f"sql_kind('SELECT a{n}, b{n} FROM t{n} JOIN u USING (x)') == 'select'" for n in range(150)]
    conditions += [f"[1, 2, 3, 4].all(a, [1, 2, 3, 4, 5].all(b, a + b < {n}))" for n in range(20, 120)]
    size = 0
    for number in range(10_000):
        pattern = f"{number}.{{600}}"
        size += bounded_size(pattern)
        if size > MATCHES_MAX:
            break
        conditions.append(f"args.a.matches('{pattern}')")
    rules: list[dict[str, Any]] = [
        {"id": f"r{number}", "when": condition, "then": "hold"} for number, condition in enumerate(conditions)
    ]
    tools: list[str] = []
    for number in range(10_000):
        pattern = f"{number:04d}{'?' * 240}"
        if (len(tools) + 1) * glob_size(pattern) > TOOLS_MAX:
            break
        tools.append(pattern)
    rules += [
        {"id": f"t{first}", "match": {"tools": tools[first : first + 200]}, "then": "hold"}
        for first in range(0, len(tools), 200)
    ]
    return {"policy": "worst", "rules": rules}


@asynccontextmanager
async def felt() -> AsyncIterator[list[float]]:
    """How much later than it should the loop came back to something, each time, in seconds."""
    lags: list[float] = []

    async def beat() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(BEAT_S)
            lags.append(time.perf_counter() - before - BEAT_S)

    beating = asyncio.create_task(beat())
    try:
        yield lags
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def test_case_31_decider_goes_on_while_the_worst_policy_is_published_and_adopted(seed: int) -> None:
    policy = worst_policy()
    document = policy_from_value(policy)
    assert not size_problems(document)
    assert not program_problems(document)
    forget()
    lab = Lab(MemoryLog(Topics(), 1, lambda: START_MS), 1, random.Random(seed), offload=on_thread)
    try:
        await lab.start_worker("one")
        await lab.publish_basics()
        async with felt() as lags:
            published = asyncio.create_task(lab.publish_policy(policy))
            trace = await lab.ask("x", k.StartExecution(agent="bot"))
            at_once = not published.done()
            await published
        assert types(trace) == ["ExecutionStarted"]
        assert at_once, "others are decided while it is compiled"
        assert len(lags) > TURNS, lags
    finally:
        await lab.close()


async def test_case_31_writer_that_recovers_the_definitions_reads_them_apart(seed: int) -> None:
    policy = worst_policy()
    log = MemoryLog(Topics(), 1, lambda: START_MS)
    lab = Lab(log, 1, random.Random(seed), offload=on_thread)
    try:
        first = await lab.start_worker("one")
        await lab.publish_policy(policy)
        await first.stop()
        forget()
        async with felt() as lags:
            await lab.start_worker("two")
            await lab.ask("x", k.StartExecution(agent="bot"))
        assert len(lags) > TURNS, lags
    finally:
        await lab.close()
