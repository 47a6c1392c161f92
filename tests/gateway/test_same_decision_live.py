"""The same answer of the same person is the same decision, whichever way it comes and whatever that names."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from placet.cli.app import app
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import event_types

pytestmark = [pytest.mark.stack, pytest.mark.broker]

Way = Callable[[Caller, dict[str, Any]], str]


def by_terminal(person: Caller, hold: dict[str, Any]) -> str:
    """It names the question's digest, and a permission's view, under a key of its own."""
    root = ["--url", person.url, "--token", person.token, "--project", "books"]
    done = CliRunner().invoke(app, [*root, "answer", hold["hold_id"], "yes", "--yes", "--json"])
    assert done.exit_code == 0, done.output
    return str(json.loads(done.stdout)["decision_id"])


def by_chat(person: Caller, hold: dict[str, Any]) -> str:
    """It names nothing of what was shown."""
    body = {"request_id": hold["request_id"], "response": answer_to(hold)}
    return accepted(person.post("/agent/hitl/respond", body))


def by_digest(person: Caller, hold: dict[str, Any]) -> str:
    body = {"decision": "respond", "value": answer_to(hold), "digest": hold["digest"]}
    return accepted(person.post(f"/v1/holds/{hold['hold_id']}/decision", body))


def by_key(person: Caller, hold: dict[str, Any]) -> str:
    body = {"decision": "respond", "value": answer_to(hold)}
    return accepted(person.post(f"/v1/holds/{hold['hold_id']}/decision", body, key=uuid4().hex))


def answer_to(hold: dict[str, Any]) -> Any:
    return True if hold["kind"] == "permission" else "yes"


def accepted(answer: Any) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["decision_id"])


WAYS: tuple[Way, ...] = (by_terminal, by_chat, by_digest, by_key)
# The terminal does not ask for a permission that is decided, whatever the answer would be.
PAIRS = [
    (kind, ways)
    for kind in ("clarification", "permission")
    for ways in permutations(WAYS, 2)
    if (kind, ways[1]) != ("permission", by_terminal)
]


def asked(bot: Caller, anna: Caller, **more: Any) -> dict[str, Any]:
    request = bot.post("/v1/requests", {"question": "Go on?", **more}).json()
    found: dict[str, Any] = anna.get(f"/v1/holds/{request['hold_id']}").json()
    return found


@pytest.mark.parametrize(
    ("kind", "ways"),
    PAIRS,
    ids=["-".join((kind, *(way.__name__ for way in ways))) for kind, ways in PAIRS],
)
def test_answer_repeated_by_another_way_is_the_same_decision(
    bot: Caller, anna: Caller, doors: Doors, kind: str, ways: tuple[Way, Way]
) -> None:
    hold = asked(bot, anna, kind=kind)

    first, again = (way(anna, hold) for way in ways)

    assert again == first
    types = event_types(anna, hold["execution_id"])
    assert [types.count(name) for name in ("DecisionRecorded", "DecisionRefused")] == [1, 0]
    other = {"request_id": hold["request_id"], "response": False if kind == "permission" else "no"}
    assert anna.post("/agent/hitl/respond", other).json()["code"] == "already_decided"
    same = {"request_id": hold["request_id"], "response": answer_to(hold)}
    rob = doors.caller("rob", "reviewer")
    assert rob.post("/agent/hitl/respond", same).json()["code"] == "already_decided"


def test_approval_repeated_without_its_view_is_the_same_decision_and_releases_once(
    bot: Caller, anna: Caller
) -> None:
    call = bot.propose(bot.execution())
    hold = anna.get(f"/v1/holds/{call['hold_id']}").json()
    path = f"/v1/holds/{call['hold_id']}/decision"
    body = {"decision": "approve", "digest": hold["digest"], "view_digest": hold["view_digest"]}
    first = anna.post(path, body)
    del body["view_digest"]
    assert accepted(anna.post(path, body)) == accepted(first)
    assert anna.post(path, {**body, "digest": "0" * 64}).json()["code"] == "already_decided"
    assert event_types(anna, call["execution_id"]).count("ToolCallReleased") == 1
