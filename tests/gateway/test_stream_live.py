from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import check_named

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def messages_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    event: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "data" in event:
            message = json.loads(event["data"])
            assert (event["event"], event.get("id")) == (message["type"], message.get("cursor"))
            check_named(message)
            yield message
            event = {}


def open_stream(caller: Caller, channels: str, cursor: str | None = None) -> Any:
    headers = {"Authorization": f"Bearer {caller.token}"}
    if cursor is not None:
        headers["Last-Event-ID"] = cursor
    return httpx.stream(
        "GET", f"{caller.url}/v1/events/stream", params={"channels": channels}, headers=headers, timeout=30
    )


def test_stream_carries_the_sockets_messages_and_goes_on_from_its_last_id(bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    with open_stream(anna, "holds") as response:
        messages = messages_of(response.iter_lines())
        assert next(messages)["type"] == "snapshot"
        bot.propose(execution_id, call_id="c1")
        shown = next(message for message in messages if message.get("execution_id") == execution_id)
        assert (shown["type"], shown["call_id"]) == ("tool_call_pending_review", "c1")
    bot.propose(execution_id, call_id="c2")
    with open_stream(anna, "holds", shown["cursor"]) as response:
        missed = next(
            message
            for message in messages_of(response.iter_lines())
            if message.get("execution_id") == execution_id
        )
        assert (missed["type"], missed["call_id"]) == ("tool_call_pending_review", "c2")


def test_stream_of_events_has_every_fact_once_in_order(bot: Caller, anna: Caller) -> None:
    with open_stream(anna, "events") as response:
        messages = messages_of(response.iter_lines())
        next(messages)
        execution_id = bot.execution()
        bot.propose(execution_id, "read_file")
        found: list[dict[str, Any]] = []
        while len(found) < 4:
            message = next(messages)
            if message["execution_id"] == execution_id:
                found.append(message)
    assert [message["event_type"] for message in found] == [
        "ExecutionStarted",
        "ToolCallProposed",
        "PolicyVerdictIssued",
        "ToolCallReleased",
    ]
    assert [message["version"] for message in found] == [1, 2, 3, 4]


def test_stream_of_what_one_may_not_read_is_refused(doors: Doors, bot: Caller) -> None:
    with open_stream(bot, "events") as response:
        assert response.status_code == 403
    with open_stream(bot, "nonsense") as response:
        assert response.status_code == 422
    with open_stream(doors.caller("ana", "analyst"), "executions:nowhere") as response:
        assert response.status_code == 404


def test_stream_ends_with_its_token(doors: Doors) -> None:
    short = doors.caller("anna", "reviewer", ttl_s=2)
    with open_stream(short, "holds") as response:
        last = list(messages_of(response.iter_lines()))[-1]
    assert (last["type"], last["code"]) == ("error", "unauthenticated")


@pytest.mark.parametrize(
    ("path", "headers", "name"),
    [
        ("/v1/events/stream", {"Last-Event-ID": "x"}, "Last-Event-ID"),
        ("/v1/events/stream?cursor=y", {"Last-Event-ID": "x"}, "Last-Event-ID"),
        ("/v1/events/stream?cursor=x", {}, "cursor"),
        ("/agent/chat?conversation_id={}", {"Last-Event-ID": "x"}, "Last-Event-ID"),
        ("/v1/holds?after=x", {}, "after"),
    ],
)
def test_refusal_of_a_wrong_position_begins_with_what_the_client_calls_it(
    bot: Caller, anna: Caller, path: str, headers: dict[str, str], name: str
) -> None:
    answer = anna.get(path.format(bot.execution()), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{name}: this is no position in this installation's log")
