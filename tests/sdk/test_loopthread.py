"""The thread of the synchronous client: whoever waits for it may be interrupted at any instruction."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from placet.loopthread import LoopThread, RequestedLoop, Step

WITHIN_S = 20.0
ROUNDS = 20


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread()
    yield made
    made.stop()


class Interrupting:
    """Raises KeyboardInterrupt before the n-th instruction of what a thread runs, in whatever function that is."""

    def __init__(self, instruction: int) -> None:
        self.left = instruction

    def __call__(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def interrupted(thread: LoopThread, make: Callable[[], Any], instruction: int) -> bool:
    """Whether the thread was waited for to the end without reaching that instruction."""
    before = sys.gettrace()
    sys.settrace(Interrupting(instruction))
    try:
        thread.run(make)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


async def number() -> int:
    await asyncio.sleep(0)
    return 7


def test_interrupt_at_any_instruction_leaves_the_thread_at_work(thread: LoopThread) -> None:
    reached = 0
    while interrupted(thread, number, reached + 1):
        reached += 1
        assert thread.run(number, WITHIN_S) == 7, f"after the interrupt at instruction {reached}"
    assert reached > 20, "the waiting itself was not interrupted"


def test_interrupt_cancels_what_was_waited_for(thread: LoopThread) -> None:
    began, ended = threading.Event(), threading.Event()

    async def endless() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        thread.run(endless, 0.05)
    assert began.is_set()
    assert ended.wait(WITHIN_S)


def test_wrong_arguments_are_raised_where_they_were_given(thread: LoopThread) -> None:
    with pytest.raises(TypeError, match="argument"):
        thread.run(lambda: number(1))  # type: ignore[call-arg]


def test_stop_tells_whoever_waits(thread: LoopThread) -> None:
    began = threading.Event()

    async def endless() -> None:
        began.set()
        await asyncio.Event().wait()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(thread.run, endless)
        assert began.wait(WITHIN_S)
        thread.stop()
        with pytest.raises(concurrent.futures.CancelledError):
            waiting.result(WITHIN_S)


def test_background_ends_when_it_is_told_to_and_harmlessly_after_the_thread(thread: LoopThread) -> None:
    ended = threading.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    work = thread.background(endless)
    assert thread.run(number, WITHIN_S) == 7
    work.cancel()
    assert ended.wait(WITHIN_S)
    thread.stop()
    work.cancel()


def test_stop_in_the_turn_of_an_exit_ends_the_thread(thread: LoopThread) -> None:
    def both() -> None:
        thread._stop_here()
        raise SystemExit

    thread.soon(both)
    thread._thread.join(WITHIN_S)
    assert not thread._thread.is_alive()


def test_stop_ends_the_thread_though_what_is_given_up_exits(thread: LoopThread) -> None:
    began = threading.Event()

    async def exits() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise SystemExit

    thread.background(exits)
    assert began.wait(WITHIN_S)
    thread.stop()
    assert not thread._thread.is_alive()
    with pytest.raises(RuntimeError, match="closed"):
        thread.run(number)


def test_what_is_requested_while_the_thread_gives_up_is_cancelled_too(thread: LoopThread) -> None:
    requested: list[Step[None]] = []
    begun = threading.Event()

    async def never() -> None:
        await asyncio.Event().wait()

    async def requests_at_its_end() -> None:
        begun.set()
        try:
            await never()
        finally:
            # As another thread would.
            step: Step[None] = Step(thread._loop)
            step.start(never)
            requested.append(step)

    thread.background(requests_at_its_end)
    assert begun.wait(WITHIN_S)
    thread.stop()
    with pytest.raises(concurrent.futures.CancelledError):
        requested[0].result(WITHIN_S)


def test_what_is_requested_too_late_to_be_started_is_cancelled() -> None:
    async def never() -> None:
        raise AssertionError

    loop = RequestedLoop()
    loop.is_over = True
    early, late = Step[None](loop), Step[None](loop)
    early.start(never)
    loop.close()
    with pytest.raises(concurrent.futures.CancelledError):
        early.result(None)
    with pytest.raises(RuntimeError, match="closed"):
        late.start(never)


def test_threads_that_request_while_another_stops_all_go_on() -> None:
    ended: list[BaseException] = []

    def requesting(loop_thread: LoopThread) -> None:
        try:
            while True:
                loop_thread.run(lambda: asyncio.sleep(0))
        except (concurrent.futures.CancelledError, RuntimeError) as error:
            ended.append(error)

    for number in range(ROUNDS):
        loop_thread = LoopThread()
        threads = [threading.Thread(target=requesting, args=(loop_thread,)) for _ in range(4)]
        for one in threads:
            one.start()
        time.sleep(0.001 * (number % 5))
        loop_thread.stop()
        for one in threads:
            one.join(WITHIN_S)
    assert len(ended) == 4 * ROUNDS
    gc.collect()


async def test_another_loop_awaits_gets_the_result_cancels_and_hears_of_the_end(thread: LoopThread) -> None:
    cancelled = threading.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fails() -> None:
        raise KeyError("a fault")

    assert await asyncio.wrap_future(thread.future(number)) == 7
    with pytest.raises(KeyError, match="a fault"):
        await asyncio.wrap_future(thread.future(fails))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await asyncio.wrap_future(thread.future(never))
    assert await asyncio.to_thread(cancelled.wait, WITHIN_S)
    left = asyncio.wrap_future(thread.future(never))
    await asyncio.to_thread(thread.stop)
    with pytest.raises(asyncio.CancelledError):
        await left


def test_stop_while_the_loop_gives_up_is_no_other_stop(thread: LoopThread) -> None:
    begun, ends = threading.Event(), threading.Event()

    async def slow_to_end() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.set()
            await asyncio.sleep(0.2)

    thread.background(slow_to_end)
    assert begun.wait(WITHIN_S)
    stopping = threading.Thread(target=thread.stop)
    stopping.start()
    assert ends.wait(WITHIN_S)
    thread.stop()
    stopping.join(WITHIN_S)
    assert thread.has_ended()
    with pytest.raises(RuntimeError, match="closed"):
        thread.run(number)
