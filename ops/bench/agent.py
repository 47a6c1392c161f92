"""What an agent says over the socket: frames, and the steps that several benchmarks take."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

from ops.bench.websocket import Message, Refused, Socket

Item = TypeVar("Item")

IN_FLIGHT = 64
READ, WRITE = "read_file", "write_file"
# The status of an answer about a call that waits for a verdict or a person.
ACCEPTED = 202


def run_id() -> str:
    """The start of the names of one run."""
    return uuid.uuid4().hex[:10]


async def paced(items: Iterable[Item], rate: float) -> AsyncIterator[tuple[Item, float]]:
    """The items at a rate (1/s), each with the moment at which it was due, even if it comes later."""
    began = time.perf_counter()
    for number, item in enumerate(items):
        at = began + number / rate
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        yield item, at


def start(execution_id: str, agent: str) -> Message:
    """Open an execution."""
    return {"type": "start_execution", "body": {"execution_id": execution_id, "agent": agent}}


def propose(execution_id: str, call_id: str, tool: str = READ, **more: str) -> Message:
    """Propose a call that the default policy allows (read) or holds (write)."""
    return {"type": "propose", "execution_id": execution_id, "body": call_body(call_id, tool) | more}


def call_body(call_id: str, tool: str = READ) -> Message:
    """A proposal's body."""
    return {"call_id": call_id, "tool": tool, "arguments": {"path": "notes/today.txt", "call": call_id}}


def consume(call: Message, attempt_id: str) -> Message:
    """Use the grant of a released call."""
    body = {"digest": call["grant"]["digest"], "attempt_id": attempt_id}
    return _of_call("consume", call, body)


def result(call: Message, attempt_id: str) -> Message:
    """Say that a call succeeded."""
    body = {"attempt_id": attempt_id, "outcome": "succeeded", "output": {"bytes": 1}, "duration_ms": 1}
    return _of_call("result", call, body)


def finish(execution_id: str) -> Message:
    """End an execution."""
    return {"type": "finish_execution", "execution_id": execution_id, "body": {"outcome": "completed"}}


def approve(hold: Message) -> Message:
    """Approve exactly what a hold shows."""
    return {
        "type": "decision",
        "hold_id": hold["hold_id"],
        "decision": "approve",
        "digest": hold["digest"],
    }


def consumed(call: Message, attempt_id: str) -> Message:
    """The call, if the attempt may run it now.

    Raises:
        Refused: it may not.
    """
    if (call["status"], call["attempt_id"]) != ("consumed", attempt_id):
        raise Refused(f"the call {call['call_id']} is {call['status']}, and not this attempt's")
    return call


def released(call: Message) -> Message:
    """The call, if it may run.

    Raises:
        Refused: it may not.
    """
    if call["status"] != "released":
        raise Refused(f"the call {call['call_id']} is {call['status']}, not released")
    return call


async def judged(ask: Callable[[], Awaitable[Message]]) -> Message:
    """Propose a call, and again as long as the gateway answers 202 without a verdict, which a busy decider causes.

    A proposal sent again is the same proposal, and all of the time counts.

    Args:
        ask: sends the proposal and returns the call.
    """
    while (call := await ask())["status"] == "proposed":
        pass
    return call


async def allowed(socket: Socket, frame: Message) -> Message:
    """Propose a call that the policy allows, over the socket; the call.

    Raises:
        Refused: it may not run.
    """
    return released(await judged(lambda: socket.ask(frame, 200, ACCEPTED)))


async def start_many(socket: Socket, ids: Iterable[str], agent: str) -> None:
    """Open executions, all at once."""
    await in_flight(lambda execution_id: socket.ask(start(execution_id, agent), 201), ids)


async def in_flight(
    do: Callable[[Item], Awaitable[Any]], items: Iterable[Item], at_once: int = IN_FLIGHT
) -> float:
    """Do something for each item, so many at a time; the seconds that it took."""
    left = iter(items)

    async def work() -> None:
        for item in left:
            await do(item)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
    return time.perf_counter() - began


async def timed(doing: Awaitable[Any]) -> float:
    """How long it takes, in ms."""
    began = time.perf_counter()
    await doing
    return (time.perf_counter() - began) * 1e3


def _of_call(kind: str, call: Message, body: Message) -> Message:
    return {"type": kind, "execution_id": call["execution_id"], "call_id": call["call_id"], "body": body}
