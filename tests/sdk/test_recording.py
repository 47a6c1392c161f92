"""What a function returned or raised is recorded, whatever its own code does when it is asked for words."""

import asyncio
import concurrent.futures
import sys
import threading
from dataclasses import dataclass
from typing import Any

import pytest

import placet
from placet import Placet
from placet.recording import UNRECORDED
from tests.sdk.desk import Desk
from tests.sdk.runs import pay_in, running, running_blocking
from tests.sdk.scripted import DEADLINE_S, QUICK
from tests.sdk.threaded import serving_thread


class Row:
    """As an object-relational mapper's row of a session that is closed."""

    def __init__(self, raises: type[BaseException] = RuntimeError) -> None:
        self.raises = raises

    def __repr__(self) -> str:
        raise self.raises("detached")

    def __hash__(self) -> int:
        return 1


@dataclass
class Part:
    held: Any


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def wordless(x: int) -> None:
    raise Wordless


def nested() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


def refuse(value: Any) -> Any:
    return value.nothing


def leave(value: Any) -> Any:
    sys.exit("in encode")


def interrupt(value: Any) -> Any:
    raise KeyboardInterrupt


def in_time(act: Any) -> Any:
    """Do something on a thread, so that a call that never ends is a failure and no more."""
    ended: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            ended.set_result(act())
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return ended.result(DEADLINE_S)


OUTPUTS = [
    pytest.param(Row, None, id="repr"),
    pytest.param(nested, None, id="nested"),
    pytest.param(lambda: {"a": Row()}, None, id="repr-inside"),
    pytest.param(lambda: {Row(): 1}, None, id="repr-of-a-key"),
    pytest.param(lambda: Part(threading.Lock()), None, id="dataclass"),
    pytest.param(Row, refuse, id="encode-and-repr"),
]
ENDS = [
    pytest.param(lambda: 1, leave, SystemExit, id="encode-exits"),
    pytest.param(lambda: 1, interrupt, KeyboardInterrupt, id="encode-interrupts"),
]


@pytest.mark.parametrize(("make", "encode"), OUTPUTS)
def test_output_without_words_is_recorded_as_such_and_returned(make: Any, encode: Any) -> None:
    desk = Desk()
    with running_blocking(desk) as run:
        given = make()
        found = run.gated(tool="look", encode=encode)(lambda x: given)(1)
    assert found is given
    assert desk.results[0]["outcome"] == "succeeded"
    assert UNRECORDED in desk.results[0]["output"]


@pytest.mark.parametrize(("make", "encode"), OUTPUTS)
@pytest.mark.parametrize("is_coroutine", [True, False])
async def test_output_without_words_in_an_asynchronous_run_is_recorded_as_such(
    make: Any, encode: Any, is_coroutine: bool
) -> None:
    given, desk = make(), Desk()

    async def look(x: int) -> Any:
        return given

    async with running(desk) as run:
        gated: Any = run.gated(tool="look", encode=encode)(look if is_coroutine else lambda x: given)
        assert await gated(1) is given
    assert desk.results[0]["outcome"] == "succeeded"
    assert UNRECORDED in desk.results[0]["output"]


@pytest.mark.parametrize(("make", "encode", "end"), ENDS)
def test_output_whose_words_end_the_process_is_recorded_first_and_the_client_goes_on(
    make: Any, encode: Any, end: Any
) -> None:
    desk = Desk()
    with running_blocking(desk) as run:
        with pytest.raises(end):
            in_time(lambda: run.gated(tool="look", encode=encode)(lambda x: make())(1))
        assert in_time(lambda: run.gated(tool="look")(lambda x: x)(2)) == 2
    assert [one["outcome"] for one in desk.results] == ["succeeded", "succeeded"]
    assert UNRECORDED in desk.results[0]["output"]


def test_failure_without_words_is_recorded_by_its_name_and_fails_the_run() -> None:
    desk = Desk()
    with pytest.raises(Wordless), running_blocking(desk) as run:
        run.gated(wordless)(1)
    assert desk.results[0]["outcome"] == "failed"
    assert desk.results[0]["error"].startswith("Wordless")
    assert desk.finished[0]["reason"].startswith("Wordless")


async def test_failure_without_words_in_an_asynchronous_run_is_recorded_by_its_name() -> None:
    desk = Desk()

    async def pay(recipient: str) -> None:
        raise Wordless

    with pytest.raises(Wordless):
        await pay_in(desk, pay)
    assert desk.results[0]["error"].startswith("Wordless")
    assert desk.finished[0]["reason"].startswith("Wordless")


async def test_run_left_by_words_that_are_no_text_fails() -> None:
    desk = Desk()
    with pytest.raises(ValueError, match="bad"):
        async with running(desk):
            raise ValueError("bad \ud800")
    assert desk.finished[0]["reason"] == "ValueError: bad ?"


def test_encode_of_a_synchronous_run_holds_up_no_other_call() -> None:
    desk, begun, other = Desk(lease_s=0.3), threading.Event(), threading.Event()

    def slow(value: Any) -> Any:
        begun.set()
        assert other.wait(DEADLINE_S)
        return value

    with running_blocking(desk) as run:
        slowly = threading.Thread(target=lambda: run.gated(tool="look", encode=slow)(lambda x: x)(1))
        slowly.start()
        assert begun.wait(DEADLINE_S)
        assert in_time(lambda: run.gated(tool="look")(lambda x: x)(2)) == 2
        other.set()
        slowly.join(DEADLINE_S)
    assert [one["output"] for one in desk.results] == [2, 1]


async def test_encode_of_an_asynchronous_run_holds_up_no_other_call_nor_the_signs_of_life() -> None:
    desk, other = Desk(lease_s=0.3), threading.Event()

    def slow(value: Any) -> Any:
        assert other.wait(DEADLINE_S)
        return value

    async def look(x: int) -> int:
        return x

    script = desk.scripted()
    async with running(desk, script) as run:
        slowly = asyncio.create_task(run.gated(encode=slow)(look)(1))
        await script.until(lambda: desk.heartbeats)
        assert await run.gated(look)(2) == 2
        other.set()
        assert await slowly == 1
    assert [one["output"] for one in desk.results] == [2, 1]


def test_call_id_that_ends_the_process_leaves_the_client_as_it_is() -> None:
    desk = Desk()
    with running_blocking(desk) as run:
        with pytest.raises(SystemExit):
            in_time(lambda: run.gated(tool="look", call_id=leave)(lambda x: x)(1))
        assert in_time(lambda: run.gated(tool="look", call_id=lambda a: f"n{a['x']}")(lambda x: x)(2)) == 2
    assert list(desk.calls) == ["n2"]


def test_token_source_that_ends_the_process_is_told_and_the_client_goes_on() -> None:
    tokens: list[Any] = [leave, lambda value: "t"]
    desk = Desk()
    with serving_thread(desk.scripted()) as script:
        client = Placet(
            script.url, token=lambda: tokens.pop(0)(1) if len(tokens) > 1 else "t", patience=QUICK
        )
        with client:
            with pytest.raises((SystemExit, placet.Unreachable)):
                in_time(lambda: client.call("run", "c1"))
            with pytest.raises(placet.NotFound):
                in_time(lambda: client.call("run", "c1"))


async def test_failure_is_told_though_the_loops_threads_are_all_taken() -> None:
    """By a function that waits for the very call that failed."""
    desk, loop = Desk(), asyncio.get_running_loop()
    loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
    async with running(desk) as run:

        @run.gated
        async def inner(x: int) -> int:
            raise ValueError("no")

        @run.gated
        def outer(x: int) -> str:
            with pytest.raises(ValueError, match="no"):
                asyncio.run_coroutine_threadsafe(inner(x), loop).result(DEADLINE_S)
            return "told"

        # Gated, it is awaited.
        told: Any = outer(1)
        assert await asyncio.wait_for(told, 2 * DEADLINE_S) == "told"
    assert [one["outcome"] for one in desk.results] == ["failed", "succeeded"]


async def test_failure_whose_words_take_their_time_gives_signs_of_life() -> None:
    desk, beat = Desk(lease_s=0.3), threading.Event()

    class Slow(Exception):
        def __str__(self) -> str:
            assert beat.wait(DEADLINE_S)
            return "slow"

    async def fail(x: int) -> None:
        raise Slow

    script = desk.scripted()
    async with running(desk, script) as run:
        failing = asyncio.create_task(run.gated(fail)(1))
        await script.until(lambda: desk.heartbeats)
        beat.set()
        with pytest.raises(Slow):
            await failing
    assert desk.results[0]["error"] == "Slow: slow"
