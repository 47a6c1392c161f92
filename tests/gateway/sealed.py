"""A tool with sensitive arguments, and what agents and people say about its calls."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.gateway.conftest import Caller

TOOL = "send_login"
DEFINITION: dict[str, Any] = {
    "annotations": {"destructiveHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "token": {"type": "string", "minLength": 4, "x-placet-sensitive": True},
            "logins": {
                "type": "array",
                "items": {"type": "object", "properties": {"pin": {"x-placet-sensitive": True}}},
            },
        },
        "required": ["token"],
    },
}
PLAIN = {"to": "ops", "token": "hunter2-token", "logins": [{"pin": {"n": [1.5, None]}}]}


def proposed(bot: Caller, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return bot.propose(bot.execution(), TOOL, arguments=arguments or PLAIN, **more)


def path_of(call: dict[str, Any]) -> str:
    return f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"


def decided(by: Caller, call: dict[str, Any], decision: str = "approve", **more: Any) -> Any:
    return by.post(
        f"/v1/holds/{call['hold_id']}/decision", {"decision": decision, "digest": call["digest"], **more}
    )


def consumed(bot: Caller, call: dict[str, Any], attempt_id: str = "") -> Any:
    body = {"digest": call["digest"], "attempt_id": attempt_id or f"a-{uuid4().hex}"}
    return bot.post(f"{path_of(call)}/consume", body)


def values_of(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return {secret["path"]: secret["value"] for secret in answer.json()["secrets"]}


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def asked(bot: Caller, *names: str, **more: Any) -> dict[str, Any]:
    body = {
        "request_id": f"q-{uuid4().hex[:12]}", "kind": "env_var", "question": "Keys?", "fields": names, **more
    }  # fmt: skip
    answer = bot.post("/v1/requests", body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def answered(by: Caller, request: dict[str, Any], value: Any, decision: str = "respond") -> Any:
    return by.post(f"/v1/holds/{request['hold_id']}/decision", {"decision": decision, "value": value})


def taken(bot: Caller, request: dict[str, Any], attempt_id: str = "mine") -> Any:
    return bot.post(f"/v1/requests/{request['request_id']}/secrets", {"attempt_id": attempt_id})
