"""The command at a scripted gateway: one hold that deceives, its view, and what else it is asked for."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli import run
from schemas import canonical
from schemas.registry import builtin
from tests.sdk.scripted import Asked, Scripted

ARGUMENTS = {"recipient": "GB\u202e29", "amount": 98.7}
DIGEST = canonical.call_digest("acme", "billing-bot", "send_money", "v1", canonical.canonical(ARGUMENTS))
HOLD: dict[str, Any] = {
    "tenant": "acme",
    "hold_id": "5b0a1f6e-2f0e-5c3b",
    "execution_id": "invoice-march",
    "call_id": "c0ffee00-1111",
    "status": "open",
    "kind": "permission",
    "agent": "billing-bot",
    "tool": "send_money",
    "tool_version": "v1",
    "arguments": ARGUMENTS,
    "digest": DIGEST,
    "question": "Pay \x1b[31mGB29?",
    "risk": {"score": 0.9, "level": "high", "parts": [], "required": 0.5},
    "deadline_at": "2026-11-20T10:00:00Z",
    "must_read": True,
    "badges": ["bidi"],
}
TEXT = (
    f"placet-view 1\nbadges: bidi\ntool: send_money\ndigest: {DIGEST}\n"
    'arguments:\n  "recipient": "GB\\u{202e}29"\n'
)
VIEW = {
    "hold_id": HOLD["hold_id"],
    "version": 1,
    "text": TEXT,
    "view_digest": sha256(TEXT.encode()).hexdigest(),
    "badges": ["bidi"],
    "redactions": [],
    "must_read": True,
    "truncated": False,
    "diff": None,
    "seen": [],
}
GROUP = {
    "agent": "billing-bot",
    "tool": "send_money",
    "risk_level": "low",
    "count": 37,
    "holds": [{"hold_id": HOLD["hold_id"], "digest": DIGEST, "view_digest": None}],
}
OTHER = {**HOLD, "hold_id": "5b0a1f6e-ffff", "call_id": "beef", "tool": "send_mail"}
WARNING = {
    "path": "scope",
    "code": "shadowed",
    "message": (
        "`support` names the agent and wins as a whole: rule deny-writes of `interns` never applies to intern-joe"
    ),
    "severity": "warning",
}
PUBLISHED = {"version": 3, "cursor": "k", "warnings": [WARNING, "rule x matches no known tool"]}

EARLY: dict[str, Any] = {
    "version": 1,
    "cursor": "k",
    "warnings": [
        {
            "path": f"rules[{rule}].match.tools[{number}]",
            "code": "no_known_tool",
            "message": f"the pattern 'x{number}' matches no known tool; look for a typo, or publish the tool",
            "severity": "warning",
        }
        for rule in range(2)
        for number in range(3)
    ]
    + [
        {
            "path": "rules[2].match.tools[0]",
            "code": "near_known_tool",
            "message": "the pattern 'send_mony' matches no known tool; did you mean 'send_money'?",
            "severity": "warning",
        }
    ],
}


class Terminal:
    """The command, and what it asked and printed."""

    def __init__(self, script: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
        self.script = script
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str, url: str | None = None) -> int:
        code = run(["--url", url or self.script.url, "--token", "t", *arguments])
        self.out, self.err = self._capsys.readouterr()
        return code

    def bare(self) -> int:
        """The command without arguments: what the environment says counts."""
        code = run([])
        self.out, self.err = self._capsys.readouterr()
        return code

    def sent(self, method: str = "POST") -> list[Asked]:
        return [asked for asked in self.script.asked if asked.method == method]


def on_a_screen(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Let the command take its output for a terminal of so many columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))


def plain(printed: str) -> str:
    """What a terminal shows, without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", printed)


async def gateway(asked: Asked) -> Response:
    answer: Callable[[Asked], Response] | None = {
        "/v1/holds": lambda asked: JSONResponse({"items": [HOLD, OTHER], "next_cursor": None}),
        f"/v1/holds/{HOLD['hold_id']}": lambda asked: JSONResponse(HOLD),
        f"/v1/holds/{HOLD['hold_id']}/delegate": lambda asked: JSONResponse(HOLD),
        f"/v1/holds/{HOLD['hold_id']}/view": lambda asked: JSONResponse(VIEW),
        "/v1/holds/groups": lambda asked: JSONResponse({"items": [GROUP], "next_cursor": None}),
        f"/v1/holds/{HOLD['hold_id']}/decision": lambda asked: JSONResponse(
            {"status": "resolved", "decision_id": "d1"}
        ),
        "/v1/policies/production": lambda asked: JSONResponse(PUBLISHED),
        "/v1/policies/again": lambda asked: JSONResponse({"name": "again", "version": 4, "unchanged": True}),
        "/v1/policies/beginning": lambda asked: JSONResponse(EARLY),
        "/v1/policies": lambda asked: JSONResponse({"items": [BILLING], "next_cursor": None}),
        "/v1/policies/billing": lambda asked: JSONResponse(BILLING),
        "/v1/policies/billing/retire": lambda asked: JSONResponse(
            {**BILLING, "adopted": True, "pending": []}
        ),
        "/v1/executions": lambda asked: JSONResponse(
            {"items": [EXECUTION], "next_cursor": None, "cursor": "k0"}
        ),
        "/v1/executions/invoice-march": lambda asked: JSONResponse(
            {**EXECUTION, "at": asked.params.get("at")}
        ),
        "/v1/executions/invoice-march/events": lambda asked: JSONResponse(
            {"items": EVENTS, "next_cursor": None}
        ),
        "/v1/audit": lambda asked: JSONResponse({"items": [AUDIT], "next_cursor": None}),
        "/v1/audit/impact": lambda asked: JSONResponse({"items": [RAN], "next_cursor": None}),
        "/v1/principals": lambda asked: JSONResponse({"items": [PRINCIPAL]}),
        "/v1/principals/mia-m": lambda asked: JSONResponse({"name": "mia-m", "version": 2, "pending": []}),
        "/v1/tools": lambda asked: JSONResponse({"items": [TOOL], "next_cursor": None}),
        "/subjects": lambda asked: JSONResponse(sorted(builtin().by_subject)),
        "/v1/components": lambda asked: JSONResponse(
            {"items": [{"name": "kafka", "partitions": 4}, {"name": "decider", "state": "ready"}]}
        ),
    }.get(asked.path)
    if answer is None:
        return JSONResponse({"code": "not_found", "detail": f"no {asked.path}"}, 404)
    return answer(asked)


BILLING = {
    "name": "billing",
    "version": 3,
    "project": "*",
    "document": {
        "policy": "billing",
        "scope": {"agent": "billing-*"},
        "rules": [{"id": "pay", "then": "hold"}],
    },
    "published_at": "2026-01-05T12:00:00Z",
    "published_by": "olga",
    "retired_at": None,
    "retired_by": None,
    "retired_reason": None,
}
TOOL = {
    "name": "send_money",
    "version": "v1",
    "idempotent": False,
    "annotations": {"title": "Send", "readOnlyHint": False, "destructiveHint": True},
    "description": "Send money.",
}
RAN = {"execution_id": "invoice-march", "call_id": "c0ffee", "status": "succeeded", "tool": "send_money"}
PRINCIPAL = {
    "principal": "mia-m",
    "version": 2,
    "subjects": ["mia", "mia\u202e@old"],
    "roles": ["treasurer"],
    "agents": [],
    "disabled": False,
}
EXECUTION = {
    "execution_id": "invoice-march",
    "state": "running",
    "agent": "billing-bot",
    "version": 7,
    "updated_at": "2026-11-20T12:00:00Z",
}
EVENTS = [
    {
        "event_id": "1",
        "type": "ExecutionStarted",
        "at": "2026-11-20T10:00:00Z",
        "partition": 3,
        "offset": 7,
    },
    {
        "event_id": "2",
        "type": "ToolCallProposed",
        "at": "2026-11-20T11:00:00Z",
        "partition": 3,
        "offset": 8,
    },
]
AUDIT = {
    "event_id": "a1",
    "subject": "ada",
    "action": "approve",
    "at": "2026-11-20T10:00:00Z",
    "call_id": "c",
}
