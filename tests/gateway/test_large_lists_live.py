"""A list that is larger than what may wait for one subject comes in shorter pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest
from starlette.types import Message

from gateway.rest.request_context import OWNER, PAGE_BYTES
from gateway.rest.unread_responses import UnreadResponseLimit
from gateway.settings import Limits
from gateway.shares.budget import Budget
from placet import Placet
from projections.queries.paging import Mark, cursor_at
from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]
# A hold shows the arguments of its call; so many of them are more than a page, and a call is not over any limit.
TEXT = "x" * 200_000
CALLS = 1 + PAGE_BYTES // len(TEXT)
MANY = {"limit": "500"}
# Other tests look for theirs in the first page of what is open.
TENANT = "bulky"


@pytest.fixture(scope="module")
def large(doors: Doors) -> tuple[Caller, str]:
    """An agent, and its execution of many large calls that are held."""
    doors.publish(TENANT)
    bot = doors.caller("bulk", "agent", agent="bulky", tenant=TENANT)
    execution_id = bot.execution()
    for number in range(CALLS):
        body = {"call_id": f"c{number:03}", "tool": "send_money", "arguments": {"amount": 5, "text": TEXT}}
        answer = wait_for(partial(_proposed, bot, execution_id, body), lambda said: said.status_code != 429)
        assert answer.status_code in (200, 202), answer.text
    return bot, execution_id


def _proposed(bot: Caller, execution_id: str, body: dict[str, Any]) -> httpx.Response:
    """The answer; 429 while large calls of the tenant have used up their share of the decider."""
    return bot.post(f"/v1/executions/{execution_id}/tool-calls?wait=0", body)


def pages(caller: Caller, path: str, query: dict[str, str]) -> Iterator[list[dict[str, Any]]]:
    cursor: str | None = ""
    while cursor is not None:
        answer = caller.get(path, params=query | ({"cursor": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text[:300]
        assert len(answer.content) < PAGE_BYTES + 2 * len(TEXT)
        yield answer.json()["items"]
        cursor = answer.json()["next_cursor"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/holds", {"agent": "bulky", "status": "open"}),
        ("/v1/holds", {"agent": "bulky"}),
        ("/v1/executions/{execution_id}/tool-calls", {}),
        ("/v1/executions/{execution_id}/events", {}),
    ],
    ids=["open holds", "holds of the views", "calls", "events"],
)
def test_case_30_list_of_large_items_comes_in_pages_that_can_be_sent(
    doors: Doors, large: tuple[Caller, str], path: str, query: dict[str, str]
) -> None:
    bot, execution_id = large
    after = bot.get(f"/v1/executions/{execution_id}").json()["cursor"]
    query = query | {"after": after} | ({} if path.endswith("tool-calls") else MANY)
    ada = doors.caller("ada", "analyst", tenant=TENANT)
    found = list(pages(ada, path.format(execution_id=execution_id), query))
    assert len(found) > 1
    assert all(found)
    items = [orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for page in found for item in page]
    assert len(items) == len(set(items)) >= CALLS


def test_tools_of_more_than_a_page_come_in_pages(doors: Doors) -> None:
    operator = doors.caller("olga", "operator", tenant=TENANT)
    schema = {"type": "object", "description": TEXT[:65_000]}
    definition = {"inputSchema": schema, "outputSchema": schema}
    names = [f"tool_{number:03}" for number in range(1 + PAGE_BYTES // 130_000)]
    for name in names:
        answer = operator.call("PUT", f"/v1/tools/{name}", definition)
        assert answer.status_code in (200, 202), answer.text
    query = {"after": answer.json()["cursor"]}
    found = list(pages(operator, "/v1/tools", query))
    assert len(found) > 1
    listed = [tool["name"] for page in found for tool in page]
    assert listed == sorted(listed)
    assert [name for name in listed if name in names] == names
    with Placet(doors.url, token=operator.token) as placet:
        page = placet.tools.list()
        assert placet.tools.list(cursor=page.next_cursor).items[0].name == found[1][0]["name"]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/v1/tools", lambda item: (item["name"], item["project"])),
        ("/v1/principals", lambda item: (item["principal"], item["project"])),
        ("/v1/policies", lambda item: (item["name"], item["project"])),
        ("/v1/policies/doors/versions", lambda item: (-item["version"],)),
        ("/v1/rules", lambda item: (item["policy"], item["project"], 0)),
    ],
)
def test_list_of_definitions_goes_on_behind_its_cursor(
    doors: Doors, path: str, place: Callable[[dict[str, Any]], Mark]
) -> None:
    admin = doors.caller("root", "admin", "operator")
    admin.call("PUT", "/v1/principals/paged", {"subjects": ["paged"], "roles": ["reviewer"]})
    whole = admin.get(path).json()
    assert whole["next_cursor"] is None
    behind = admin.get(path, params={"cursor": cursor_at(place(whole["items"][0]))}).json()
    assert behind["items"] == whole["items"][1:]
    refused = admin.get(path, params={"cursor": cursor_at(("x", 1, "y", 2))})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")


def test_calls_of_a_large_execution_are_found_by_the_client(doors: Doors, large: tuple[Caller, str]) -> None:
    bot, execution_id = large
    with Placet(bot.url, token=bot.token, agent="bulky") as placet:
        page = placet.executions.calls(execution_id)
        ids = [call.call_id for call in page]
        while page.next_cursor is not None:
            page = placet.executions.calls(execution_id, cursor=page.next_cursor)
            ids += [call.call_id for call in page]
    assert ids == [f"c{number:03}" for number in range(CALLS)]


def test_cursor_of_another_list_is_refused(large: tuple[Caller, str]) -> None:
    bot, execution_id = large
    answer = bot.get(f"/v1/executions/{execution_id}/tool-calls?cursor=nonsense")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


@pytest.mark.parametrize(("waiting", "size", "status"), [(0, 101, 422), (50, 70, 429), (0, 99, 200)])
async def test_answer_that_can_never_wait_is_not_told_to_be_asked_again(
    waiting: int, size: int, status: int
) -> None:
    kib, owner = 1024, ("acme", uuid4().hex)
    budget = Budget(100 * kib, 1000 * kib)
    budget.take(owner, waiting * kib)
    sent: list[Message] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        length = str(size * kib).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "state": {OWNER: owner}, "headers": [], "method": "GET", "path": "/v1/tools"}
    await UnreadResponseLimit(app, budget, 1.0)(scope, receive, send)
    assert sent[0]["status"] == status
    names = {name for name, _ in sent[0]["headers"]}
    assert (b"retry-after" in names) == (status == 429)


def test_page_is_well_below_what_may_wait() -> None:
    assert Limits().subject_bytes >= PAGE_BYTES * 4
