"""What the loads of the benchmarks do about a server that is slow, and about a load that fails."""

from __future__ import annotations

import asyncio

import pytest

from ops.bench.agent import judged
from ops.bench.collector import collecting
from ops.bench.load import BenchFailedError
from ops.bench.websocket import Message


def test_call_without_a_verdict_is_proposed_again() -> None:
    answers = iter(["proposed", "proposed", "released", "denied"])

    async def ask() -> Message:
        return {"status": next(answers)}

    assert asyncio.run(judged(ask)) == {"status": "released"}
    assert next(answers) == "denied"


def test_collector_lets_the_failure_of_a_load_through(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LookupError, match="the load"), collecting():
        raise LookupError("the load")

    assert capfd.readouterr().err == ""


def test_stack_that_sent_no_span_fails_its_benchmark() -> None:
    with pytest.raises(BenchFailedError, match="sent no span"), collecting():
        pass
