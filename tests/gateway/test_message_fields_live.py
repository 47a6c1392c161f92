"""A field that a message does not have is refused, on every message that a client may send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.sockets.protocol import CLIENT_MESSAGES, type_of
from tests.gateway.conftest import Caller
from tests.gateway.sockets import open_socket, raw_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]

KINDS = sorted({type_of(model) for model in CLIENT_MESSAGES})
ENOUGH: dict[str, Any] = {
    "execution_id": "e",
    "call_id": "c",
    "hold_id": "h",
    "channels": ["holds"],
    "decision": "approve",
    "digest": "0" * 64,
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "authenticate"])
async def test_unknown_field_of_a_message_is_refused_by_name(bot: Caller, kind: str) -> None:
    model = next(model for model in CLIENT_MESSAGES if type_of(model) == kind)
    given = {name: value for name, value in ENOUGH.items() if name in model.model_fields}
    async with open_socket(bot.url, bot.token) as socket:
        reply = await socket.ask(kind, **given, cursr="x")
    assert (reply["status"], reply["body"]["code"]) == (422, "invalid")
    assert [error["path"] for error in reply["body"]["errors"]] == ["cursr"]
    assert reply["body"]["detail"] == "cursr: this field is unknown; remove it"


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [
        ("start_execution", {"execution_id": "mine", "body": {"agent": "bot"}}, "execution_id"),
        (
            "finish_execution",
            {"execution_id": "e", "reason": "r", "body": {"outcome": "cancelled"}},
            "reason",
        ),
    ],
)
async def test_field_of_the_body_beside_it_is_refused_with_its_place(
    bot: Caller, kind: str, given: dict[str, Any], name: str
) -> None:
    async with open_socket(bot.url, bot.token) as socket:
        reply = await socket.ask(kind, **given)
    assert reply["status"] == 422
    assert reply["body"]["detail"] == f"{name}: this field belongs into body"


@pytest.mark.parametrize("kind", ["decision", "claim"])
async def test_body_of_a_message_that_has_none_is_refused_with_where_its_fields_belong(
    anna: Caller, kind: str
) -> None:
    async with open_socket(anna.url, anna.token) as socket:
        reply = await socket.ask(kind, hold_id="h", body={"seconds": 5})
    assert reply["status"] == 422
    assert reply["body"]["detail"] == "body: this message has its fields beside type: put them there"


async def test_missing_id_is_named(bot: Caller) -> None:
    async with open_socket(bot.url, bot.token) as socket:
        reply = await socket.ask("propose", body={"tool": "pay", "arguments": {}})
    assert reply["body"]["detail"] == "execution_id: this field is missing; add it beside type"


async def test_unknown_type_is_refused_with_all_types(bot: Caller) -> None:
    async with open_socket(bot.url, bot.token) as socket:
        reply = await socket.ask("subscibe", channels=["holds"])
    assert reply["body"]["detail"] == f"type: name one of {', '.join(KINDS)}"


async def test_second_authentication_is_refused(bot: Caller) -> None:
    async with open_socket(bot.url, bot.token) as socket:
        await socket.send(type="authenticate", token=bot.token)
        refused = await socket.next("error")
    assert (refused["status"], refused["detail"]) == (422, "this connection is authenticated already")


async def test_misspelled_project_does_not_authenticate_into_another(bot: Caller) -> None:
    async with raw_socket(bot.url) as socket:
        await socket.send(json.dumps({"type": "authenticate", "token": bot.token, "projct": "payments"}))
        refused = json.loads(await socket.recv())
    assert refused["detail"] == "projct: this field is unknown; remove it"
