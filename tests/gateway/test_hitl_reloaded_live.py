"""examples/hitl/chat.html, loaded again while several messages of its conversation wait for their answers."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from placet import AsyncTurn
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next
from tests.gateway.test_hitl_examples_live import chatting, fresh
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


async def test_page_in_a_browser_that_is_loaded_again_shows_every_turn_under_way(
    doors: Doors, anna: Caller
) -> None:
    agent = fresh("namer")

    async def namer(turn: AsyncTurn) -> str:
        await turn.say(f"I heard {turn.message}.")
        return f"{turn.message} is {await turn.hitl.request_clarification(f'What is {turn.message}?')}"

    async with chatting(doors, agent, namer) as chat:
        page = chat.page

        async def shows(**expected: list[str]) -> None:
            for kind, texts in expected.items():
                await expect(page.locator(f".{kind}")).to_have_text(texts, timeout=30_000)

        for number, message in enumerate(("one", "two", "three")):
            await chat.say(message)
            await expect(page.locator(".user")).to_have_count(number + 1)
            if not number:
                # The others wait for this turn.
                await expect(page.locator(".hitl_requested")).to_be_visible(timeout=30_000)
        await asyncio.to_thread(answer_next, anna, agent, "1")
        await expect(page.locator(".hitl_requested").nth(1)).to_contain_text("two", timeout=30_000)
        conversation = page.url.partition("#")[2]
        messages = f"/v1/executions/{conversation}/messages"
        await asyncio.to_thread(
            wait_for,
            lambda: {one["text"] for one in anna.get(messages).json()["items"]},
            {"three"}.issubset,
        )
        await page.reload()
        await chat.sign_in()
        heard = ["I heard one.", "one is 1", "I heard two."]
        await shows(user=["one", "two", "three"], message=heard)
        await asyncio.to_thread(answer_next, anna, agent, "2")
        await shows(message=[*heard, "two is 2", "I heard three."])
        await asyncio.to_thread(answer_next, anna, agent, "3")
        said = [*heard, "two is 2", "I heard three.", "three is 3"]
        await shows(message=said, complete=["—", "—"])
        await page.reload()
        await chat.sign_in()
        await shows(user=["one", "two", "three"], message=said, complete=["—"])
