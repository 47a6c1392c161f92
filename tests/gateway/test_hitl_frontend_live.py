"""docs/hitl/frontend-guide.md in a real browser, and its tables of events and of rights, on a running stack."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any
from uuid import uuid4

import httpx
import pytest

from placet import AsyncPlacet, AsyncTurn, gated
from schemas.limits import TURNS_OPEN_MAX
from tests.gateway.another import another_gateway
from tests.gateway.browser import open_page, served
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, open_hold
from tests.gateway.test_chat_anew_live import of_another_log
from tests.gateway.test_chat_live import serving
from tests.pages import PAGES, Block

pytestmark = [pytest.mark.stack, pytest.mark.broker]

(GUIDE,) = (page.read_text("utf-8") for page in PAGES if page.stem == "frontend-guide")
EMPTY = b"<!doctype html><title>A page of another origin</title>"


def fresh(word: str) -> str:
    return f"{word}-{uuid4().hex[:10]}"


@gated(tool="read_file")
async def read_file(path: str) -> str:
    return "42"


async def helper(turn: AsyncTurn) -> str:
    if turn.message == "fail":
        raise RuntimeError("no such plan")
    await turn.say("Let me see.")
    plan = await read_file("plan.txt")
    options = [{"id": "staging", "label": "Staging"}, {"id": "production", "label": "Production"}]
    where = await turn.hitl.request_decision("Where do we deploy?", options)
    return f"deployed plan {plan} to {where}"


def fits(shown: Any, real: Any) -> bool:
    """Whether data is as the guide shows it: … is any text, and fields can be left out."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return all(name in real and fits(part, real[name]) for name, part in shown.items())
    if isinstance(shown, list) and isinstance(real, list):
        return len(shown) == len(real) and all(map(fits, shown, real))
    return isinstance(real, str) if shown == "…" else bool(shown == real)


async def test_events_of_the_guide(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    shown = [
        dict(line.split(": ", 1) for line in part.split("\n")) for part in block.text.strip().split("\n\n")
    ]
    agent = "helper"
    found: list[tuple[str, str, dict[str, Any]]] = []
    async with serving(doors, agent, helper, wait_s=0) as client:
        for message in ("deploy 42", "fail"):
            async for event in client.conversations.chat(message):
                found.append((event.cursor, event.type, dict(event.body)))
                if event.type == "hitl_requested":
                    await asyncio.to_thread(answer_next, anna, agent, "staging")
    for one in shown:
        data = json.loads(one["data"])
        assert any(
            kind == one["event"] and fits(data, real) and (cursor or "id" not in one)
            for cursor, kind, real in found
        ), (one["event"], [real for _, kind, real in found if kind == one["event"]])
    assert {kind for _, kind, _ in found} == {one["event"] for one in shown}
    assert all(real["grant"] is None for _, kind, real in found if kind == "tool_call")


# Calls the guide's function as a page that comes back after an event: its first connection has that id.
CHAT = """async ([url, token, message, last]) => {
    const seen = [], fetched = window.fetch;
    const coming = (where, how) => {
        if (last) how.headers["Last-Event-ID"] = last;
        last = "";
        return fetched(where, how);
    };
    const run = new Function("fetch", `${window.guide}; return chat;`)(coming);
    await run(url, () => token, message, (event, data) => seen.push([event, data.text]));
    return seen;
}"""


async def test_chat_function_of_the_guide(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent = fresh("helper")
    web = doors.caller("web", "agent", agent=agent)
    message = {"message": "deploy", "agent": agent, "message_id": fresh("m"), "conversation_id": fresh("c")}
    turn = f"/v1/executions/{message['conversation_id']}/turns/{message['message_id']}"
    with served({"/": EMPTY}) as origin:
        async with (
            another_gateway(doors, more={"gateway_origins": origin}) as url,
            serving(doors, agent, helper, wait_s=0),
            open_page(f"{origin}/") as page,
        ):
            await page.evaluate("(text) => { window.guide = text; }", block.text)

            async def chatted(last: str = "") -> Any:
                return await page.evaluate(CHAT, [url, web.token, message, last])

            chatting = asyncio.create_task(chatted())
            await asyncio.to_thread(open_hold, anna, agent)
            too_old = of_another_log(doors, (await asyncio.to_thread(web.get, turn)).json()["cursor"])
            late = asyncio.create_task(chatted(too_old))
            await asyncio.to_thread(answer_next, anna, agent, "staging")
            seen, seen_late = await chatting, await asyncio.wait_for(late, 60)
            after_the_end = (await asyncio.to_thread(web.get, turn)).json()["cursor"]
            assert await asyncio.wait_for(chatted(after_the_end), 30) == []
    kinds = [kind for kind, _ in seen]
    assert kinds[0] == "message"
    assert kinds[-2:] == ["message", "complete"]
    assert {"tool_call", "hitl_requested", "hitl_resolved"} <= set(kinds)
    assert ["message", "deployed plan 42 to staging"] in seen
    assert seen_late == [["anew", None], *seen]


async def test_answering_of_the_guide(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent = fresh("asker")
    token = doors.token("bot", "agent", agent=agent)
    with served({"/": EMPTY}) as origin:
        async with (
            another_gateway(doors, more={"gateway_origins": origin}) as url,
            AsyncPlacet(url, token=token, agent=agent) as client,
            open_page(f"{origin}/") as page,
        ):
            request = await client.requests.ask("Which?", kind="decision", options=["a", "b"])
            hold = await asyncio.to_thread(open_hold, anna, agent)
            await page.add_script_tag(content=block.text)

            async def respond(value: Any) -> Any:
                script = """([url, token, hold, value]) =>
                    respond(url, () => token, hold, value).then((told) => told.status, (error) => error.message)"""
                return await page.evaluate(script, [url, anna.token, hold, value])

            assert (await respond("c")).startswith("unknown_option: ")
            assert await respond("b") == "resolved"
            assert (await respond("a")).startswith("already_decided: ")
            assert (await client.requests.get(request.request_id)).response == "b"


def rights() -> list[list[str]]:
    """The rows of the guide's table of tokens."""
    table = re.search(r"^## Tokens.*?\n\|.*?\n\|[-|]+\n(.*?)\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    assert table is not None
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()]


def test_table_of_tokens_says_who_may_do_what(doors: Doors) -> None:
    agent = fresh("helper")
    own = doors.caller("bot", "agent", agent=agent)
    callers = {
        "of the agent": own,
        "of another agent": doors.caller("bot", "agent", agent=fresh("other")),
        **{f"`{role}`": doors.caller(role, role) for role in ("reviewer", "operator", "admin", "analyst")},
    }
    shared = own.execution()
    for what, *said in rights():
        for name in what.split(" (")[0].split(", "):
            caller = callers.pop(name)
            found = [
                begins(caller, {"message": "hi", "agent": agent, "conversation_id": fresh("c")}),
                begins(caller, {"message": "hi", "conversation_id": shared}),
                follows(caller, shared),
                answers(caller, own),
            ]
            assert ["yes" if allowed else "no" for allowed in found] == said, (name, found)
    assert callers == {}


def streams(caller: Caller, method: str, path: str, **more: Any) -> bool:
    headers = {"Authorization": f"Bearer {caller.token}"}
    with httpx.stream(method, f"{caller.url}{path}", headers=headers, timeout=30, **more) as answer:
        assert answer.status_code in (200, 403)
        return answer.status_code == 200


def begins(caller: Caller, body: dict[str, Any]) -> bool:
    return streams(caller, "POST", "/agent/chat", json={"message_id": fresh("m"), **body})


def follows(caller: Caller, conversation_id: str) -> bool:
    return streams(caller, "GET", f"/agent/chat?conversation_id={conversation_id}")


def answers(caller: Caller, asker: Caller) -> bool:
    asked = asker.post("/v1/requests", {"question": "Which?"}).json()
    word = {"request_id": asked["request_id"], "response": "this"}
    answer = caller.post("/agent/hitl/respond", word)
    assert answer.status_code in (200, 403, 404), answer.text
    return answer.status_code == 200


def test_refusals_of_the_guide_come_before_the_stream(doors: Doors) -> None:
    own = doors.caller("bot", "agent", agent=fresh("helper"))
    conversation = own.execution()

    def refused(body: dict[str, Any], caller: Caller = own) -> tuple[int, str]:
        answer = caller.post("/agent/chat", {"conversation_id": conversation, **body})
        return answer.status_code, answer.json()["code"]

    nobody = Caller(own.url, "none", own.client)
    assert refused({"message": "hi"}, nobody) == (401, "unauthenticated")
    assert refused({"message": ""}) == (422, "invalid")
    assert refused({"message": "hi", "what": "is this"}) == (422, "invalid")
    assert own.get(f"/agent/chat?conversation_id={fresh('none')}").json()["code"] == "not_found"
    messages = f"/v1/executions/{conversation}/messages"
    for number in range(TURNS_OPEN_MAX // 2):
        assert own.post(messages, {"text": "hi", "message_id": f"m{number}"}).status_code == 201
    assert refused({"message": "other", "message_id": "m0"}) == (409, "id_reused")
    assert refused({"message": "one more"}) == (429, "quota")
    headers = {"Last-Event-ID": "none"}
    answer = own.get(f"/agent/chat?conversation_id={conversation}", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
