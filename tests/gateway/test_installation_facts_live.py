"""What the documents and the status tell of an installation is as the installation is."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import httpx
import pytest

from tests.gateway.conftest import PARTITIONS, Caller, Doors
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]
ARGUMENTS_BYTES = 262_000


def test_topics_of_the_asyncapi_document_have_the_partitions_of_the_broker(doors: Doors) -> None:
    channels = doors.client.get(f"{doors.url}/asyncapi.json").json()["channels"]
    partitions = {
        name: channels[name]["bindings"]["kafka"]["partitions"]
        for name in ("commands", "executions", "definitions", "trust")
    }
    assert partitions == {
        "commands": PARTITIONS,
        "executions": PARTITIONS,
        "definitions": 1,
        "trust": PARTITIONS,
    }


def test_every_role_has_the_address_at_which_its_probe_answers(doors: Doors) -> None:
    owner = Caller(doors.url, doors.token("root", "admin", tenant="default", project="*"), doors.client)
    told = {part["name"]: part["probe_address"] for part in owner.get("/v1/components").json()["items"]}
    status = {part["name"]: part["probe_address"] for part in doors.stack.status()["components"]}
    roles = {name for name in status if name not in ("kafka", "gateway")}
    assert {"decider", "projector", "trust", "grpc"} <= roles
    for name in roles:
        assert status[name], name
        assert told[name] == status[name]
        assert httpx.get(f"{status[name]}/metrics").status_code == 200
    assert status["gateway"] is None


async def test_call_whose_values_are_all_large_comes_to_a_client_that_takes_1_mib(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    execution_id, call_id = bot.execution(), uuid4().hex
    path = f"/v1/executions/{execution_id}/tool-calls/{call_id}"

    def run() -> None:
        call = bot.propose(execution_id, call_id=call_id, arguments=large("a"))
        seen = anna.get(f"/v1/holds/{call['hold_id']}/view").json()["view_digest"]
        edit = {
            "decision": "edit",
            "edited_arguments": large("b"),
            "digest": call["digest"],
            "view_digest": seen,
        }
        edited = anna.post(f"/v1/holds/{call['hold_id']}/decision", edit)
        assert edited.status_code == 200, edited.text[:500]
        attempt = {"attempt_id": "a"}
        consumed = bot.post(f"{path}/consume", {**attempt, "digest": edited.json()["edited_digest"]})
        assert consumed.json()["status"] == "consumed", consumed.text[:500]
        output = {"outcome": "succeeded", "output": "é" * (ARGUMENTS_BYTES // 2)}
        assert bot.post(f"{path}/result", {**attempt, **output}).status_code == 200

    await asyncio.to_thread(run)
    # The library's own limit is 1 MiB.
    async with open_socket(doors.url, anna.token) as socket:
        (call,) = await socket.subscribe(f"calls:{execution_id}/{call_id}")
    assert len(json.dumps(call, ensure_ascii=False).encode()) > 3 * ARGUMENTS_BYTES
    ((edit),) = call["edits"]
    assert (edit["by"], edit["patch"]) == ("anna", None)


def large(letter: str) -> dict[str, object]:
    """Arguments just below their limit."""
    return {"amount": 5, "text": letter + "é" * ((ARGUMENTS_BYTES - 100) // 2)}
