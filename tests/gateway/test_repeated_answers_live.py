"""An answer that the same person gives again, as a client does whose earlier answer was lost with its process."""

from __future__ import annotations

from typing import Any

import pytest

from placet import AlreadyDecided, AsyncPlacet, AsyncTurn
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_chat_live import answered, fresh, serving

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(180)]


@pytest.mark.parametrize("value", ["staging", {"KEY": "s3cret"}], ids=["text", "variables"])
async def test_answer_repeated_is_one_and_another_comes_too_late(
    doors: Doors, anna: Caller, value: Any
) -> None:
    name = fresh("deployer")

    async def deploy(turn: AsyncTurn) -> str:
        if isinstance(value, dict):
            return f"deployed with {len(await turn.hitl.request_env_var(['KEY']))} key"
        return f"deployed to {await turn.hitl.request_clarification('Where?')}"

    async with (
        serving(doors, name, deploy, wait_s=0) as client,
        AsyncPlacet(doors.url, token=anna.token) as person,
    ):
        stream = client.conversations.chat("deploy it")
        request_id = (await anext(stream)).body["request_id"]
        first = await answered(person.conversations.continue_chat(request_id, value))
        theirs = await answered(stream)
        assert first[-1].type == theirs[-1].type == "complete"
        # The turn is over, so there is nothing to follow.
        assert await answered(person.conversations.continue_chat(request_id, value)) == []
        told = [await person.conversations.respond(request_id, value) for _ in range(2)]
        decided = theirs[0].body["decision"]["decision_id"]
        assert [one["decision_id"] for one in told] == [decided, decided]
        with pytest.raises(AlreadyDecided):
            await person.conversations.respond(request_id, {"KEY": "x"} if value != "staging" else "b")
