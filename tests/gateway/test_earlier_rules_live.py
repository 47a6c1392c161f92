"""A question that the rules of an earlier version let through, asked again under its id by a gateway of this one.

The gateway under test has stricter rules for questions than the stack's decider, as if it were of a later version.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from gateway.operations import requests
from schemas.refusals import Refusal
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_nothing_opened_live import check_nothing_opened

pytestmark = [pytest.mark.stack, pytest.mark.broker]

OPTIONS = ["a", "b"]
STRICT = "options: no option has one letter alone"


def fresh(word: str) -> str:
    return f"{word}-{uuid4().hex[:10]}"


@pytest.fixture
def stricter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Today's rules, of the gateways in this process: the questions of these tests are refused by them."""
    monkeypatch.setattr(requests, "question_problem", lambda _: (Refusal.INVALID, STRICT))


async def asks(url: str, caller: Caller, body: dict[str, Any], key: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {caller.token}"} | ({"Idempotency-Key": key} if key else {})
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.post(f"{url}/v1/requests", json=body, headers=headers)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("is_named", [True, False], ids=["by its id", "by its key"])
@pytest.mark.usefixtures("stricter")
async def test_question_that_is_asked_again_is_the_same_whatever_the_rules_are_now(
    doors: Doors, is_named: bool
) -> None:
    name = fresh("asker")
    caller = doors.caller(name, "agent", agent=name)
    question = {"question": "Which?", "kind": "decision", "options": OPTIONS}
    named, key = (question | {"request_id": fresh("q")}, "") if is_named else (question, fresh("key"))
    asked = (await asyncio.to_thread(lambda: caller.post("/v1/requests", named, key=key or None))).json()
    async with another_gateway(doors) as url:
        status, again = await asks(url, caller, named, key)
        assert (status // 100, again.get("hold_id")) == (2, asked["hold_id"]), again
        other = named | {"question": "Which one?"}
        refused = await asks(url, caller, other, key)
        code = "id_reused" if is_named else "idempotency_key_reused"
        assert (refused[0], refused[1]["code"]) == (409, code)


@pytest.mark.parametrize("more", [{}, {"request_id": "q"}], ids=["without an id", "with an id"])
@pytest.mark.usefixtures("stricter")
async def test_new_question_is_refused_by_the_rules_of_now_and_opens_nothing(
    doors: Doors, anna: Caller, more: dict[str, str]
) -> None:
    name = fresh("asker")
    caller = doors.caller(name, "agent", agent=name)
    async with another_gateway(doors) as url:
        status, refused = await asks(url, caller, {"question": "Which?", "options": OPTIONS, **more})
    assert (status, refused["code"], refused["detail"]) == (422, "invalid", STRICT)
    await asyncio.to_thread(check_nothing_opened, caller, anna, name)
