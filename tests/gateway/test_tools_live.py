"""Publishing tools over REST."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.schemas.test_tool_definition import MCP_TOOLS

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def _code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_every_fault_of_a_tool_is_told_with_its_path(doors: Doors) -> None:
    given = {"foo": 1, "lease_seconds": 1, "idempotent": "yes", "annotations": {"readonlyHint": True}}
    answer = doors.caller("olga", "operator").call("PUT", "/v1/tools/x", given)
    assert _code(answer) == (422, "invalid")
    errors = {error["path"]: error["message"] for error in answer.json()["errors"]}
    assert errors.keys() == given.keys() - {"annotations"} | {"annotations.readonlyHint"}
    assert errors["annotations.readonlyHint"].endswith("did you mean 'readOnlyHint'?")


def test_tool_of_mcps_own_model_is_published_once_with_and_without_its_nulls(doors: Doors) -> None:
    operator = doors.caller("olga", "operator")
    for given in MCP_TOOLS:
        name = f"mcp-{uuid4().hex[:8]}"
        bare = {member: value for member, value in given.items() if value is not None}
        answers = [operator.call("PUT", f"/v1/tools/{name}", {**one, "name": name}) for one in (given, bare)]
        assert [(answer.status_code, answer.json()["version"]) for answer in answers] == [(200, 1)] * 2
        found = operator.get(f"/v1/tools/{name}").json()
        assert found["inputSchema"] == given["inputSchema"]
        assert not found.keys() & {"icons", "execution", "_meta"}


def test_publish_again_is_the_same_version_and_a_change_the_next(doors: Doors) -> None:
    operator = doors.caller("olga", "operator")
    name = f"tool-{uuid4().hex[:8]}"
    answers = [
        operator.call("PUT", f"/v1/tools/{name}", {"description": text}).json() for text in ("a", "a", "b")
    ]
    assert [(one["version"], one["unchanged"]) for one in answers] == [(1, False), (1, True), (2, False)]
    assert operator.get(f"/v1/tools/{name}").json()["description"] == "b"
    assert name in {tool["name"] for tool in operator.get("/v1/tools").json()["items"]}


def test_published_tool_is_judged_by_on_every_partition_at_once(doors: Doors, bot: Caller) -> None:
    operator = doors.caller("olga", "operator")
    name = f"read-{uuid4().hex[:8]}"
    executions = [bot.execution() for _ in range(12)]
    assert {bot.propose(e, name)["tool_version"] for e in executions} == {""}
    assert operator.call("PUT", f"/v1/tools/{name}", {"description": "r"}).json()["adopted"]
    versions = {bot.propose(e, name)["tool_version"] for e in executions}
    assert versions == {operator.get(f"/v1/tools/{name}").json()["tool_version"]}
