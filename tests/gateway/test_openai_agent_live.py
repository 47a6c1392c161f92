"""An agent on an OpenAI-compatible endpoint: the model's calls are gated, and its answers survive their worker.

No model can be had where the suite runs: the endpoint is a real HTTP server whose answers are written down here.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest
from openai import AsyncOpenAI

from placet import AsyncPlacet, ChatEvent, gated
from placet.openai_agent import OpenAIAgent
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": f"call-{name}", "type": "function", "function": function}]}


@contextmanager
def endpoint(*answers: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An endpoint that gives these answers one after another, and what it was asked."""
    asked: list[dict[str, Any]] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            message = {"role": "assistant", **left.pop(0)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            said = json.dumps(
                {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


ran: list[float] = []


@gated(tool="send_money")
def send_money(amount: float) -> str:
    """Send money."""
    ran.append(amount)
    return f"sent {amount}"


@gated(tool="read_file")
def read_file(path: str) -> str:
    """Read a file."""
    return f"the content of {path}"


def worker(client: AsyncPlacet, name: str, url: str, **more: Any) -> asyncio.Task[None]:
    model = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    agent = OpenAIAgent("m", client=model, system="You are a clerk.", tools=[send_money, read_file])
    return asyncio.create_task(client.serve({name: agent.answer}, **more))


async def test_model_calls_gated_tools_and_asks_and_continues_in_another_worker(
    doors: Doors, anna: Caller
) -> None:
    name = f"clerk-{uuid4().hex[:8]}"
    answers = (
        calls("read_file", path="invoice.txt"),
        calls("ask_human", question="Pay it?", options=["yes", "no"]),
        calls("send_money", amount=77.25),
        {"content": "It is paid."},
        {"content": "You are welcome."},
    )
    token = doors.token(f"{name}-worker", "agent", agent=name)
    ran.clear()
    with endpoint(*answers) as (url, asked):
        async with AsyncPlacet(doors.url, token=token, agent=name) as client:
            first = worker(client, name, url, wait_s=0)
            stream = client.conversations.chat("Pay the invoice.")
            events: list[ChatEvent] = []
            async for event in stream:
                events.append(event)
                if event.type == "hitl_requested" and event.body["kind"] == "clarification":
                    # The worker that asked is gone, and another one goes on.
                    first.cancel()
                    await asyncio.gather(first, return_exceptions=True)
                    second = worker(client, name, url, wait_s=0)
                    body = {"request_id": event.body["request_id"], "response": "yes"}
                    assert (
                        await asyncio.to_thread(anna.post, "/agent/hitl/respond", body)
                    ).status_code == 200
                if event.type == "hitl_requested" and event.body["tool"] == "send_money":
                    decision = {"decision": "approve", "digest": event.body["digest"]}
                    path = f"/v1/holds/{event.body['hold_id']}/decision"
                    assert (await asyncio.to_thread(anna.post, path, decision)).status_code == 200
            assert events[-1].type == "complete", events[-1]
            assert [event.body["text"] for event in events if event.type == "message"] == ["It is paid."]
            assert ran == [77.25]
            # Each answer of the model was asked for once, although the function was called again and again.
            assert len(asked) == 4
            roles = [message["role"] for message in asked[3]["messages"]]
            assert roles == ["system", "user", *["assistant", "tool"] * 3]
            results = [message["content"] for message in asked[3]["messages"] if message["role"] == "tool"]
            assert results == ["the content of invoice.txt", "yes", "sent 77.25"]

            conversation_id = events[0].body.get("conversation_id") or events[0].body["execution_id"]
            more = [
                event async for event in client.conversations.chat("Thanks.", conversation_id=conversation_id)
            ]
            assert more[-2].body["text"] == "You are welcome."
            assert [message["role"] for message in asked[4]["messages"]] == [*roles, "assistant", "user"]
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)


async def test_model_that_calls_tools_without_end_fails_its_turn_and_the_limit_is_named(doors: Doors) -> None:
    name = f"clerk-{uuid4().hex[:8]}"
    token = doors.token(f"{name}-worker", "agent", agent=name)
    with endpoint(*[calls("read_file", path="a")] * 2) as (url, asked):
        model = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        agent = OpenAIAgent("m", client=model, tools=[read_file], steps_max=2)
        async with AsyncPlacet(doors.url, token=token, agent=name) as client:
            serving = asyncio.create_task(client.serve({name: agent.answer}))
            events = [event async for event in client.conversations.chat("Read on.")]
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
    assert events[-1].type == "error"
    assert "answered 2 times in this turn" in events[-1].body["detail"]
    assert "at most 2 answers of its model (steps_max)" in events[-1].body["detail"]
    assert len(asked) == 2
