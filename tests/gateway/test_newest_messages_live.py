"""The messages of a conversation from the newest back, by REST and by the client."""

from __future__ import annotations

from typing import Any

import pytest

from placet import AsyncPlacet
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_chat_live import fresh

pytestmark = [pytest.mark.stack, pytest.mark.broker]

TEXTS = [f"message {number}" for number in range(7)]


@pytest.fixture
def own(doors: Doors) -> Caller:
    agent = fresh("talker")
    return doors.caller(agent, "agent", agent=agent)


@pytest.fixture
def messages(own: Caller) -> str:
    """The path of the messages of a conversation that has some."""
    path = f"/v1/executions/{own.execution()}/messages"
    for text in TEXTS:
        assert own.post(path, {"text": text}).status_code == 201
    return path


def pages(own: Caller, path: str) -> list[dict[str, Any]]:
    found = [own.get(path).json()]
    while (cursor := found[-1]["next_cursor"]) is not None:
        found.append(own.get(f"{path}&cursor={cursor}").json())
    return found


@pytest.mark.parametrize(
    ("order", "wanted"), [("", TEXTS), ("order=asc", TEXTS), ("order=desc", TEXTS[::-1])]
)
def test_pages_of_each_order_have_every_message_once(
    own: Caller, messages: str, order: str, wanted: list[str]
) -> None:
    found = pages(own, f"{messages}?limit=3&{order}".rstrip("&"))
    assert [len(page["items"]) for page in found] == [3, 3, 1]
    assert [one["text"] for page in found for one in page["items"]] == wanted


def test_message_that_comes_later_is_on_no_page_of_those_before(own: Caller, messages: str) -> None:
    first = own.get(f"{messages}?limit=3&order=desc").json()
    assert own.post(messages, {"text": "later"}).status_code == 201
    rest = own.get(f"{messages}?order=desc&cursor={first['next_cursor']}").json()
    assert [one["text"] for one in rest["items"]] == TEXTS[3::-1]
    assert own.get(f"{messages}?limit=1&order=desc").json()["items"][0]["text"] == "later"


def test_cursor_of_one_order_is_refused_in_the_other(own: Caller, messages: str) -> None:
    cursors = {
        order: own.get(f"{messages}?limit=3&order={order}").json()["next_cursor"] for order in ("asc", "desc")
    }
    for order, other in (("asc", "desc"), ("desc", "asc")):
        answer = own.get(f"{messages}?order={order}&cursor={cursors[other]}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert "another order" in answer.json()["detail"]
    assert own.get(f"{messages}?order=newest").status_code == 422


async def test_client_reads_from_the_newest_back_and_finds_what_is_under_way(
    doors: Doors, own: Caller, messages: str
) -> None:
    conversation_id = messages.split("/")[3]
    async with AsyncPlacet(doors.url, token=own.token) as client:
        page = await client.conversations.messages(conversation_id, newest_first=True)
        assert [one.text for one in page] == TEXTS[::-1]
        turns = [one.turn_id for one in await client.conversations.messages(conversation_id)]
        assert await client.conversations.under_way(conversation_id) == turns
