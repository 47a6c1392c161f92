"""A call is reported once its body has run, and not as it is handed out."""

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from placet import gated
from tests.sdk.desk import Desk
from tests.sdk.runs import pay_in, running, running_blocking
from tests.sdk.scripted import DEADLINE_S


def rows(x: int) -> Iterator[int]:
    yield x


async def later_rows(x: int) -> AsyncIterator[int]:
    yield x


class Rows:
    def __call__(self, x: int) -> Iterator[int]:
        yield x


class Paying:
    async def __call__(self, x: int) -> int:
        await asyncio.sleep(0)
        raise LookupError("no such account")


async def pay(x: int) -> int:
    await asyncio.sleep(0)
    raise LookupError("no such account")


def plainly(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


@pytest.mark.parametrize("function", [rows, later_rows, functools.partial(rows, 1), Rows()])
def test_generator_function_is_refused_at_the_decorator(function: Any) -> None:
    with pytest.raises(TypeError, match="return a list"):
        gated(tool="look")(function)


@pytest.mark.parametrize(
    "function",
    [plainly(pay), lambda x: pay(x), Paying(), functools.partial(pay), functools.partial(Paying())],
)
async def test_coroutine_in_an_asynchronous_run_is_awaited_before_it_is_reported(function: Any) -> None:
    desk = Desk()
    async with running(desk) as run:
        with pytest.raises(LookupError):
            await run.gated(tool="pay")(function)(1)
    assert desk.results[0]["error"] == "LookupError: no such account"


@pytest.mark.parametrize("function", [plainly(rows), plainly(later_rows)])
async def test_generator_in_an_asynchronous_run_has_failed(function: Any) -> None:
    desk = Desk()
    with pytest.raises(TypeError, match="whose body has not run"):
        await pay_in(desk, function)
    assert desk.results[0]["outcome"] == "failed"
    assert "whose body has not run" in desk.results[0]["error"]


@pytest.mark.parametrize("function", [plainly(rows), plainly(later_rows), plainly(pay)])
@pytest.mark.filterwarnings("error")
def test_body_handed_out_in_a_synchronous_run_has_failed_and_never_runs(function: Any) -> None:
    desk = Desk()
    with running_blocking(desk) as run, pytest.raises(TypeError, match="whose body has not run"):
        run.gated(tool="look")(function)(1)
    assert desk.results[0]["outcome"] == "failed"


def test_generator_that_was_handed_out_is_closed() -> None:
    made: list[Any] = []

    def export(x: int) -> Any:
        made.append(rows(x))
        return made[0]

    desk = Desk()
    with running_blocking(desk) as run, pytest.raises(TypeError):
        run.gated(export)(1)
    assert list(made[0]) == []


async def test_task_that_a_coroutine_function_returns_is_what_it_returned() -> None:
    """A job in the background: the body of the function has run."""
    desk, done = Desk(), asyncio.Event()

    async def begin(x: int) -> asyncio.Task[bool]:
        return asyncio.create_task(done.wait())

    async with running(desk) as run:
        job = await asyncio.wait_for(run.gated(begin)(1), DEADLINE_S)
        assert not job.done()
        done.set()
        assert await job
    assert [one["outcome"] for one in desk.results] == ["succeeded"]
