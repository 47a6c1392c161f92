"""A chat that is opened anew, without Last-Event-ID: what was shown is shown again, and what is open always."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx
import pytest

from gateway.live.cursor import CursorKey
from gateway.pushes import past_rows
from gateway.rest import turn_past
from placet import AsyncPlacet, AsyncTurn, ChatEvent, gated
from tests.gateway.another import another_gateway
from tests.gateway.conftest import PARTITIONS, Caller, Doors
from tests.gateway.people import answer_next, decide, open_hold
from tests.gateway.test_chat_live import answered, fresh, raw, reading, serving

pytestmark = [pytest.mark.stack, pytest.mark.broker]

Told = tuple[str, str, dict[str, Any]]


@gated(tool="read_file")
async def read_file(path: str) -> str:
    return "42"


@gated(tool="send_money")
async def send_money(amount: int) -> str:
    return f"sent {amount}"


async def deploy(turn: AsyncTurn) -> str:
    await turn.say("Let me see.")
    await read_file("plan.txt")
    first = await turn.hitl.request_decision("Which plan?", ["a", "b"])
    where = await turn.hitl.request_decision("Where?", ["staging", "production"])
    return f"deployed {first} to {where}"


async def pay(turn: AsyncTurn) -> str:
    return await send_money(5)


@asynccontextmanager
async def opened(
    url: str, caller: Caller, method: str = "GET", *, last: str = "", **request: Any
) -> AsyncIterator[AsyncIterator[Told]]:
    """The events of one connection to the chat, as they come."""
    headers = {"Authorization": f"Bearer {caller.token}", **({"Last-Event-ID": last} if last else {})}
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream(method, f"{url}/agent/chat", headers=headers, **request) as response,
    ):
        assert response.status_code == 200, await response.aread()
        async with aclosing(told(response)) as events:
            yield events


async def told(response: httpx.Response) -> AsyncGenerator[Told, None]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            if "event" in fields:
                yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
            fields = {}


async def until(events: AsyncIterator[Told], kind: str, count: int = 1) -> list[Told]:
    """The events up to one of a kind."""
    found: list[Told] = []
    while sum(event[1] == kind for event in found) < count:
        found.append(await asyncio.wait_for(anext(events), 30))
    return found


def words(events: list[Told]) -> list[tuple[str, dict[str, Any]]]:
    return [event[1:] for event in events]


async def test_repeated_message_shows_its_answer_from_the_beginning_with_the_open_question(
    doors: Doors, anna: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = fresh("deployer")
    web = doors.caller("web", "agent", agent=name)
    body = {"message": "go", "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}
    of_turn = {"conversation_id": body["conversation_id"], "message_id": body["message_id"]}
    async with (
        serving(doors, name, deploy, wait_s=0),
        opened(doors.url, web, "POST", json=body) as first,
    ):
        seen = await until(first, "hitl_requested")
        await asyncio.to_thread(answer_next, anna, name, "a", question="Which plan?")
        seen += await until(first, "hitl_requested")
        anew: list[tuple[str, Any]] = [("POST", {"json": body}), ("GET", {"params": of_turn})]
        for method, how in anew:
            async with opened(doors.url, web, method, **how) as again:
                shown = await until(again, "hitl_requested", 2)
                assert words(shown) == words(seen)
        # From any of the events that were shown again, a reader goes on as from the first ones.
        for index in range(len(shown) - 1):
            async with opened(doors.url, web, "POST", json=body, last=shown[index][0]) as rest:
                left = words(seen[index + 1 :])
                assert words([await asyncio.wait_for(anext(rest), 30) for _ in left]) == left
        async with opened(doors.url, web, "POST", json=body) as again:
            await until(again, "hitl_requested", 2)
            await asyncio.to_thread(answer_next, anna, name, "staging", question="Where?")
            end = await until(again, "complete")
            assert words(await until(first, "complete")) == words(end)
        assert [kind for _, kind, _ in end] == ["hitl_resolved", "message", "complete"]
        # However little is read at once: commands have several events, and are never split.
        monkeypatch.setattr(turn_past, "PAGE_BYTES", 1)
        monkeypatch.setattr(past_rows, "KEPT_BYTES", 0)
        async with another_gateway(doors) as url, opened(url, web, "POST", json=body) as whole:
            assert words(await until(whole, "complete")) == words(seen + end)


async def test_answer_of_a_moment_ago_is_shown_the_same_while_the_views_are_behind(doors: Doors) -> None:
    name = fresh("deployer")
    web = doors.caller("web", "agent", agent=name)
    async with serving(doors, name, deploy, wait_s=0):
        for _ in range(20):
            body = {"message": "go", "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}
            async with opened(doors.url, web, "POST", json=body) as first:
                seen = await until(first, "hitl_requested")
            async with opened(doors.url, web, "POST", json=body) as again:
                assert words(await until(again, "hitl_requested")) == words(seen)


async def test_followed_conversation_begins_with_the_questions_and_calls_that_are_open(
    doors: Doors, anna: Caller
) -> None:
    name = fresh("deployer")
    web = doors.caller("web", "agent", agent=name)
    body = {"message": "go", "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}
    follow = {"conversation_id": body["conversation_id"]}
    async with serving(doors, name, deploy, wait_s=0), opened(doors.url, web, "POST", json=body) as first:
        await until(first, "hitl_requested")
        await asyncio.to_thread(answer_next, anna, name, "a", question="Which plan?")
        await until(first, "hitl_requested")
        async with opened(doors.url, web, params=follow) as stream:
            # What is answered is not asked again, and nothing comes twice.
            ((last, kind, hold),) = await until(stream, "hitl_requested")
            assert (kind, hold["question"], hold["status"]) == ("hitl_requested", "Where?", "open")
            await asyncio.to_thread(answer_next, anna, name, "staging", question="Where?")
            rest = await until(stream, "complete")
            assert [kind for _, kind, _ in rest] == ["hitl_resolved", "message", "complete"]
        async with opened(doors.url, web, params=follow, last=last) as stream:
            assert words(await until(stream, "complete")) == words(rest)
    asked = await asyncio.to_thread(
        web.post, "/v1/requests", {"question": "And?", "execution_id": body["conversation_id"]}
    )
    assert asked.is_success, asked.text
    async with another_gateway(doors) as url, opened(url, web, params=follow) as stream:
        ((_, _, hold),) = await until(stream, "hitl_requested")
        assert hold["question"] == "And?"


async def test_held_call_is_shown_to_a_reader_who_comes_anew(doors: Doors, anna: Caller) -> None:
    name = fresh("payer")
    web = doors.caller("web", "agent", agent=name)
    body = {"message": "pay", "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}
    async with serving(doors, name, pay, wait_s=0):
        async with opened(doors.url, web, "POST", json=body) as first:
            seen = await until(first, "tool_call")
        async with opened(doors.url, web, "POST", json=body) as again:
            assert words(await until(again, "tool_call")) == words(seen)
        assert {kind for _, kind, _ in seen} == {"tool_call", "hitl_requested"}
        async with opened(doors.url, web, params={"conversation_id": body["conversation_id"]}) as stream:
            call, asked = [await asyncio.wait_for(anext(stream), 30) for _ in range(2)]
            assert (call[1], call[2]["status"], call[2]["grant"]) == ("tool_call", "held", None)
            assert (asked[1], asked[2]["call_id"]) == ("hitl_requested", call[2]["call_id"])
            hold = await asyncio.to_thread(open_hold, anna, name)
            await asyncio.to_thread(decide, anna, hold, decision="approve")
            rest = await until(stream, "complete")
            assert [kind for _, kind, _ in rest].count("hitl_resolved") == 1


async def test_questions_that_open_and_close_while_readers_come_are_neither_lost_nor_doubled(
    doors: Doors, anna: Caller
) -> None:
    name, count = fresh("curious"), 6
    web = doors.caller("web", "agent", agent=name)
    body = {"message": "go", "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}

    async def ask(turn: AsyncTurn) -> str:
        if turn.message == "bye":
            return "bye"
        return " ".join([str(await turn.hitl.request_decision(f"{n}?", ["a", "b"])) for n in range(count)])

    async def reads() -> list[Told]:
        async with opened(doors.url, web, "POST", json=body) as events:
            return await until(events, "complete")

    async def follows() -> list[Told]:
        async with opened(doors.url, web, params={"conversation_id": body["conversation_id"]}) as events:
            following.release()
            found = await until(events, "message")
            while found[-1][2].get("text") != "bye":
                found += await until(events, "message")
            return found

    following = asyncio.Semaphore(0)
    async with serving(doors, name, ask) as client:
        readers = [asyncio.create_task(reads())]
        followers: list[asyncio.Task[list[Told]]] = []
        for number in range(count):
            await asyncio.to_thread(open_hold, anna, name, question=f"{number}?")
            answering = asyncio.create_task(
                asyncio.to_thread(answer_next, anna, name, "a", question=f"{number}?")
            )
            for _ in range(3):
                readers.append(asyncio.create_task(reads()))
                followers.append(asyncio.create_task(follows()))
                await asyncio.sleep(0.005)
            await answering
        first, *others = [await reader for reader in readers]
        assert [kind for _, kind, _ in first].count("hitl_requested") == count
        for other in others:
            assert words(other) == words(first)
        for _ in followers:
            await following.acquire()
        await answered(client.conversations.chat("bye", conversation_id=body["conversation_id"]))
        for followed in [await follower for follower in followers]:
            asked = [data["hold_id"] for _, kind, data in followed if kind == "hitl_requested"]
            over = [data["hold_id"] for _, kind, data in followed if kind == "hitl_resolved"]
            assert len(set(asked)) == len(asked)
            assert over == asked


async def test_reader_of_a_turn_that_is_over_is_told_not_to_come_back(doors: Doors) -> None:
    name = fresh("reader")
    web = doors.caller("web", "agent", agent=name)
    body = {"message": "go", "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}
    path = f"/agent/chat?conversation_id={body['conversation_id']}&message_id={body['message_id']}"
    async with serving(doors, name, reading([])) as client:
        events = await asyncio.to_thread(raw, doors, web, body)
        assert (events[-1][1], all(event[0] for event in events)) == ("complete", True)
        assert words(await asyncio.to_thread(raw, doors, web, body)) == words(events)
        after = {"Last-Event-ID": events[-1][0]}
        for answer in (
            await asyncio.to_thread(web.post, "/agent/chat", body, headers=after),
            await asyncio.to_thread(web.get, path, headers=after),
        ):
            assert (answer.status_code, answer.content) == (204, b"")
            assert "content-type" not in answer.headers
        assert (await asyncio.to_thread(web.get, path)).text.count("event: complete") == 1
        # The client comes to an end as well.
        left = client.conversations.follow(
            body["conversation_id"], message_id=body["message_id"], cursor=events[-1][0]
        )
        assert await asyncio.wait_for(answered(left), 30) == []
        # A later position ends it, too.
        later = await answered(client.conversations.chat("on", conversation_id=body["conversation_id"]))
        after = {"Last-Event-ID": later[0].cursor}
        assert (await asyncio.to_thread(web.get, path, headers=after)).status_code == 204


async def test_client_that_sends_the_same_message_in_a_new_process_is_asked(
    doors: Doors, anna: Caller
) -> None:
    name = fresh("deployer")
    ids = {"conversation_id": fresh("c"), "message_id": fresh("m"), "agent": name}
    async with serving(doors, name, deploy, wait_s=0) as client:
        async with aclosing(client.conversations.chat("go", **ids)) as stream:
            async for event in stream:
                if event.type == "hitl_requested":
                    break
        async with AsyncPlacet(
            doors.url, token=doors.token(f"{name}-worker", "agent", agent=name), agent=name
        ) as new:
            again: list[ChatEvent] = []
            async for event in new.conversations.chat("go", **ids):
                again.append(event)
                if event.type == "hitl_requested":
                    await asyncio.to_thread(answer_next, anna, name, event.body["options"][0])
    assert again[0].type == "message"
    assert again[-2].body["text"] == "deployed a to staging"


def of_another_log(doors: Doors, cursor: str) -> str:
    """The same position with other records at it: no gateway can continue from there."""
    secret = (doors.stack.data_dir / "keys" / "cursor.key").read_bytes()
    key = CursorKey(secret, 1 + PARTITIONS)
    vector = key.read(cursor)
    return key.write(vector._replace(marks=tuple(mark ^ 1 for mark in vector.marks)))


async def test_id_that_is_too_old_leads_back_to_the_beginning(doors: Doors, anna: Caller) -> None:
    name = fresh("deployer")
    web = doors.caller("web", "agent", agent=name)
    body = {"message": "go", "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}
    async with serving(doors, name, deploy, wait_s=0) as client:
        async with opened(doors.url, web, "POST", json=body) as first:
            seen = await until(first, "hitl_requested")
        old = of_another_log(doors, seen[-1][0])
        async with opened(doors.url, web, "POST", json=body, last=old) as stream:
            ((anew, kind, data),) = [event async for event in stream]
            assert (kind, data["code"]) == ("error", "unavailable")
        async with opened(doors.url, web, "POST", json=body, last=anew) as stream:
            assert words(await until(stream, "hitl_requested")) == words(seen)
        for answer, question in (("a", "Which plan?"), ("staging", "Where?")):
            await asyncio.to_thread(answer_next, anna, name, answer, question=question)
        async with opened(doors.url, web, "POST", json=body) as stream:
            whole = words([event async for event in stream])
        async with opened(doors.url, web, "POST", json=body, last=old) as stream:
            ((anew, kind, data),) = [event async for event in stream]
            assert (kind, data["code"]) == ("error", "unavailable")
        async with opened(doors.url, web, "POST", json=body, last=anew) as stream:
            assert words([event async for event in stream]) == whole
        # The client does the same by itself.
        left = client.conversations.follow(body["conversation_id"], message_id=body["message_id"], cursor=old)
        async with aclosing(left):
            kinds = [(await asyncio.wait_for(anext(left), 30)).type for _ in range(1 + len(whole))]
        assert kinds == ["error", *(kind for kind, *_ in whole)]


async def test_turn_shows_nothing_of_the_one_before_from_an_id_of_that_time(
    doors: Doors, anna: Caller
) -> None:
    name = fresh("asker")
    web = doors.caller("web", "agent", agent=name)
    conversation = web.execution()
    messages = f"/v1/executions/{conversation}/messages"

    async def ask(turn: AsyncTurn) -> str:
        return str(await turn.hitl.request_decision(f"{turn.message}?", ["a", "b"]))

    for number in ("1", "2"):
        assert web.post(messages, {"message_id": f"m{number}", "text": number}).status_code == 201
    second = {"conversation_id": conversation, "message_id": "m2"}
    async with serving(doors, name, ask, wait_s=0):
        async with opened(doors.url, web, params={"conversation_id": conversation}) as whole:
            place = (await until(whole, "hitl_requested"))[-1][0]
        await asyncio.to_thread(answer_next, anna, name, "a", question="1?")
        async with opened(doors.url, web, params=second) as anew:
            seen = words(await until(anew, "hitl_requested"))
        async with opened(doors.url, web, params=second, last=place) as back:
            assert words(await until(back, "hitl_requested")) == seen
            await asyncio.to_thread(answer_next, anna, name, "b", question="2?")
            assert [kind for _, kind, _ in await until(back, "complete")][-1] == "complete"
    assert [data["question"] for kind, data in seen if kind == "hitl_requested"] == ["2?"]


async def test_turn_begins_with_its_claim_from_an_earlier_id(doors: Doors, anna: Caller) -> None:
    name = fresh("asker")
    web = doors.caller("web", "agent", agent=name)
    conversation = web.execution()
    turn = {"conversation_id": conversation, "message_id": "m"}

    async def ask(turn: AsyncTurn) -> str:
        return str(await turn.hitl.request_decision("Mine?", ["a", "b"]))

    async with opened(doors.url, web, params={"conversation_id": conversation}) as whole:
        web.post(f"/v1/executions/{conversation}/messages", {"message_id": "m", "text": "go"})
        ((place, _, _),) = await until(whole, "message")
    # Before a worker has taken the turn on, something is asked that belongs to none.
    aside = {"question": "Aside?", "execution_id": conversation}
    assert (await asyncio.to_thread(web.post, "/v1/requests", aside)).is_success
    async with serving(doors, name, ask, wait_s=0), opened(doors.url, web, params=turn) as anew:
        seen = words(await until(anew, "hitl_requested"))
        assert [data["question"] for _, data in seen] == ["Mine?"]
        async with another_gateway(doors) as url:
            # The second gateway has nothing of it in memory.
            for door in (doors.url, url):
                async with opened(door, web, params=turn, last=place) as back:
                    assert words(await until(back, "hitl_requested")) == seen
        await asyncio.to_thread(answer_next, anna, name, "a", question="Mine?")
        await until(anew, "complete")


async def test_stream_of_a_conversation_in_which_nothing_is_open_begins_with_its_place(doors: Doors) -> None:
    # Nobody answers the message, so it is sent to an agent of its own.
    bot = doors.caller("web", "agent", agent=fresh("silent"))
    conversation = bot.execution()
    headers, params = {"Authorization": f"Bearer {bot.token}"}, {"conversation_id": conversation}
    async with httpx.AsyncClient(timeout=30) as client:

        async def first_lines(count: int, **more: str) -> list[str]:
            async with client.stream(
                "GET", f"{doors.url}/agent/chat", params=params, headers={**headers, **more}
            ) as response:
                lines = response.aiter_lines()
                return [await anext(lines) for _ in range(count)]

        place, end = await first_lines(2)
        assert (place.startswith("id: "), end) == (True, "")
        message = {"message_id": "m", "text": "sent while nobody was connected"}
        assert bot.post(f"/v1/executions/{conversation}/messages", message).status_code == 201
        _, kind, data = await first_lines(3, **{"Last-Event-ID": place.removeprefix("id: ")})
        assert (kind, json.loads(data.removeprefix("data: "))["text"]) == ("event: message", message["text"])
