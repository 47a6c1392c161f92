"""Handlers and questions that are given the wrong thing say at once what to give."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from placet import AsyncPlacet, BlockingHITLHandler, HITLHandler, HITLPending, Placet
from placet.models import HumanRequest
from tests.sdk.keeping import Keeping
from tests.sdk.runs import running
from tests.sdk.scripted import Scripted
from tests.sdk.threaded import serving_thread

URL = "http://127.0.0.1:9"


@pytest.fixture
def blocking() -> Iterator[Placet]:
    with serving_thread(Scripted()) as script, Placet(script.url, token="t", agent="a") as made:
        yield made


async def test_handler_of_a_client_that_blocks_or_is_awaited_is_named(blocking: Placet) -> None:
    asynchronous = AsyncPlacet(URL, token="t", agent="a")
    for asker in (blocking, blocking.execution("e")):
        with pytest.raises(TypeError, match="use BlockingHITLHandler for"):
            HITLHandler(asker)  # type: ignore[arg-type]
        BlockingHITLHandler(asker)
    for awaited in (asynchronous, asynchronous.execution("e")):
        with pytest.raises(TypeError, match="use HITLHandler for"):
            BlockingHITLHandler(awaited)  # type: ignore[arg-type]
        HITLHandler(awaited)
    for handler in (HITLHandler, BlockingHITLHandler):
        with pytest.raises(TypeError, match="by a run or a client of Placet, not by str"):
            handler(URL)  # type: ignore[arg-type]


Asks = Callable[[Any], Any]
WRONG: dict[str, tuple[Asks, str]] = {
    "variables": (lambda handler: handler.request_env_var("KEY"), r"give \['KEY'\] instead of 'KEY'"),
    "one variable": (lambda handler: handler.request_env_var({"name": "KEY"}), "fields is a list"),
    "variable without a name": (
        lambda handler: handler.request_env_var([{"description": "A"}]),
        "a variable that is a dict has a name",
    ),
    "decision": (lambda handler: handler.request_decision("q", "ab"), r"options is a list: give \['ab'\]"),
    "suggestions": (lambda handler: handler.request_clarification("q", options="ab"), "options is a list"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_text_in_place_of_a_list_is_told_and_not_taken_apart(blocking: Placet, name: str) -> None:
    ask, told = WRONG[name]
    asynchronous = AsyncPlacet(URL, token="t", agent="a")
    for handler in (HITLHandler(asynchronous), HITLHandler(asynchronous.execution("e"))):
        with pytest.raises(TypeError, match=told):
            await ask(handler)
    for blocks in (BlockingHITLHandler(blocking), BlockingHITLHandler(blocking.execution("e"))):
        with pytest.raises(TypeError, match=told):
            ask(blocks)


async def test_questions_of_runs_and_clients_take_lists(blocking: Placet) -> None:
    asynchronous = AsyncPlacet(URL, token="t", agent="a")
    asked: tuple[Asks, ...] = (
        lambda client: client.requests.ask("q", options="ab"),
        lambda client: client.requests.ask("q", kind="env_var", fields="KEY"),
        lambda client: client.execution("e").ask("q", kind="decision", options="ab"),
        lambda client: client.execution("e").ask_env(["KEY", "REGION"]),
    )
    for ask in asked:
        for client in (asynchronous, blocking):
            with pytest.raises(TypeError, match=r"is a list: give|a variable is a name or a dict"):
                await result_of(partial(ask, client))


ASKS: dict[str, Asks] = {
    "clarification": lambda ask: ask.request_clarification("q", remind_after_seconds=5),
    "decision": lambda ask: ask.request_decision("q", ["a"], remind_after_seconds=5),
    "env_var": lambda ask: ask.request_env_var(["K"], remind_after_seconds=5),
    "permission": lambda ask: ask.request_permission(action="x", remind_after_seconds=5),
}


@pytest.mark.parametrize("kind", ASKS)
async def test_each_function_takes_a_reminder_of_its_own(kind: str) -> None:
    desk = Keeping()
    async with running(desk) as run:
        handler = HITLHandler(run, wait_s=0, remind_after_seconds=60)
        with pytest.raises(HITLPending):
            await ASKS[kind](handler)
        with pytest.raises(HITLPending):
            await handler.request_clarification("another")
    reminders = [(one["kind"], one["remind_after_seconds"]) for one in desk.questions.values()]
    assert reminders == [(kind, 5), ("clarification", 60)]


async def test_reminder_of_all_questions_is_of_those_that_wait_for_longer() -> None:
    desk = Keeping()
    async with running(desk) as run:
        handler = HITLHandler(run, wait_s=0, remind_after_seconds=600)
        for seconds in (None, 600, 601):
            with pytest.raises(HITLPending):
                await handler.request_clarification(f"after {seconds}?", timeout_seconds=seconds)
    assert [one.get("remind_after_seconds") for one in desk.questions.values()] == [None, None, 600]


async def result_of(asked: Callable[[], Any]) -> Any:
    found = asked()
    return await found if inspect.isawaitable(found) else found


def test_question_without_an_answer_says_that_it_waits() -> None:
    pending = HITLPending(HumanRequest("r-1"))
    assert str(pending) == "the question r-1 waits for an answer"
    assert pending.code == "not_released"


@pytest.mark.parametrize("wait_s", ["1", True])
async def test_wait_that_is_no_number_is_told(blocking: Placet, wait_s: Any) -> None:
    with pytest.raises(TypeError, match="wait_s is a number of seconds or None"):
        HITLHandler(AsyncPlacet(URL, token="t", agent="a"), wait_s=wait_s)
    with pytest.raises(TypeError, match="wait_s is a number of seconds or None"):
        BlockingHITLHandler(blocking, wait_s=wait_s)
