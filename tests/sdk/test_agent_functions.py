"""Functions of agents that cannot answer are refused where they are registered, and replies that are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import placet
from placet import AsyncPlacet, Placet
from placet.agents import REGISTERED
from placet.replies import checked_reply
from placet.turn import AsyncTurn
from tests.sdk.scripted import Scripted
from tests.sdk.threaded import serving_thread


def takes_nothing() -> str:
    return ""


def takes_two(turn: Any, more: Any) -> str:
    return ""


def generates(turn: Any) -> Any:
    yield ""


async def async_takes_nothing() -> str:
    return ""


WRONG: list[tuple[Any, str]] = [
    (takes_nothing, r"called with the turn alone, and takes \(\)"),
    (takes_two, "called with the turn alone"),
    (async_takes_nothing, "called with the turn alone"),
    (generates, "is a generator"),
    ("answer", "needs a function"),
]


@pytest.mark.parametrize(("function", "told"), WRONG)
async def test_function_that_cannot_take_a_turn_is_refused_before_the_first_message(
    function: Any, told: str
) -> None:
    with pytest.raises(TypeError, match=told):
        placet.agent("nobody")(function)
    assert "nobody" not in REGISTERED
    with pytest.raises(TypeError, match=told):
        await AsyncPlacet("http://127.0.0.1:9", token="t").serve({"nobody": function})
    with (
        serving_thread(Scripted()) as script,
        Placet(script.url, token="t") as client,
        pytest.raises(TypeError, match=told),
    ):
        client.serve({"nobody": function})


def test_decorator_without_a_name_says_how_to_give_one() -> None:
    with pytest.raises(TypeError, match=r'write @placet.agent\("name"\)'):

        @placet.agent  # type: ignore[arg-type]
        def answer(turn: Any) -> str:
            return ""


async def helper(turn: Any) -> str:
    return ""


def written(coroutine: Any) -> str:
    """What an f-string makes of a coroutine that is not awaited."""
    text = f"deployed to {coroutine}"
    coroutine.close()
    return text


def asked() -> Any:
    run = AsyncPlacet("http://127.0.0.1:9", token="t").execution("e")
    return placet.HITLHandler(run).request_decision("Where?", ["staging"])


@pytest.mark.parametrize("make", [asked, lambda: helper(None)], ids=["question", "helper"])
@pytest.mark.parametrize("given", [written, lambda coroutine: coroutine], ids=["text", "coroutine"])
def test_reply_with_a_coroutine_names_what_was_not_awaited(
    make: Callable[[], Any], given: Callable[[Any], Any]
) -> None:
    with pytest.raises(TypeError, match=r"(HITLHandler.request_decision|helper)\(…\).* an await is missing"):
        checked_reply(given(make()), helper)


async def test_turn_says_no_coroutine() -> None:
    turn = AsyncTurn.__new__(AsyncTurn)
    for said in (asked(), written(asked())):
        with pytest.raises(TypeError, match="an await is missing"):
            await turn.say(said)


def test_reply_that_is_no_text_is_told_by_its_type() -> None:
    with pytest.raises(
        TypeError, match="a reply is a text or None, and the agent gave a value of the type int"
    ):
        checked_reply(5)
    for said in (None, "", "what is <coroutine object main at 0x7f3a>?"):
        assert checked_reply(said, helper) == said
