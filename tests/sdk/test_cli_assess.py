"""`placet trust assess`, against a scripted gateway."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sdk.scripted import Asked
from tests.sdk.terminal import Terminal
from tests.sdk.test_cli_trust import ADAPTIVE, answering

ASSESSED = {
    "tool": "send_money",
    "requires_approval": False,
    "effect": "hold",
    "reason": "matched",
    "detail": "rule payments says hold",
    "rules": ["p@1/payments"],
    "risk": {"score": 0.4875, "level": "medium", "parts": ["money", "writes"], "required": 0.8974},
    "adaptive": {**ADAPTIVE, "is_eligible": True},
    "history": {"novel": []},
    "trust": None,
    "policy_version": "p@1",
    "misfit": None,
}


def assessing(terminal: Terminal, *, is_known: bool = True, **more: Any) -> list[Asked]:
    body = {
        "agent": "bot",
        "is_known": is_known,
        "at": "2026-11-20T10:00:00Z",
        "requires_approval": False,
        "risk": ASSESSED["risk"],
    }
    return answering(terminal, {"/v1/agents/bot/assess": {**body, "calls": [{**ASSESSED, **more}]}})


def test_assess_tells_whether_people_would_be_asked_and_why(terminal: Terminal) -> None:
    asked = assessing(terminal)

    assert terminal("trust", "assess", "bot", "send_money", "--arguments", '{"amount": 5}') == 0

    assert asked[-1].json()["calls"] == [{"tool": "send_money", "arguments": {"amount": 5}}]
    assert "it would be released without people" in terminal.out
    assert "adaptive: trust is enough" in terminal.out
    assert "5% are asked all the same" in terminal.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"effect": "deny", "adaptive": None}, "it would be denied"),
        ({"misfit": "$.amount: is missing"}, "do not fit the tool: $.amount: is missing"),
        ({"misfit": "$.a: x", "misfits": ["$.a: x", "$.b: y"]}, "do not fit the tool:\n  $.a: x\n  $.b: y"),
        ({"is_published": False}, "no tool send_money is published for this project: check the name"),
        ({"adaptive": {**ADAPTIVE, "is_eligible": True, "sample_rate": 1}}, "asked about every such call"),
        ({"history": {"novel": ["to"]}}, "people would be asked"),
        ({}, "risk: medium 0.49 (money, writes)\n"),
        (
            {"risk_of_tool": {"score": 0.25, "level": "low", "parts": ["writes"], "required": 0.8}},
            "risk: low 0.25 (writes), with new values medium 0.49 (money, writes)\n",
        ),
        ({"history": {"novel": ["to"]}}, "new to this agent and tool: to"),
    ],
)
def test_assess_tells_what_stands_against_a_release(
    terminal: Terminal, more: dict[str, Any], said: str
) -> None:
    assessing(terminal, requires_approval=True, **more)

    assert terminal("trust", "assess", "bot", "send_money") == 0
    assert said in terminal.out


def test_assess_of_an_agent_that_did_nothing_says_so(terminal: Terminal) -> None:
    for is_known in (True, False):
        assessing(terminal, is_known=is_known, requires_approval=True)
        assert terminal("trust", "assess", "bot", "send_money") == 0
        assert ("no agent bot has done anything in this project" in terminal.out) != is_known


def test_assess_of_names_that_nothing_has_tells_the_near_ones(terminal: Terminal) -> None:
    body = {"agent": "bto", "is_known": False, "requires_approval": True, "risk": ASSESSED["risk"]}
    call = {**ASSESSED, "tool": "send_mony", "is_published": False}
    answering(
        terminal,
        {
            "/v1/agents/bto/assess": {**body, "at": "2026-11-20T10:00:00Z", "calls": [call]},
            "/v1/agents": {"items": [{"agent": "bot", "tools": []}], "next_cursor": None},
            "/v1/tools": {"items": [{"name": "send_money", "version": "v1"}], "next_cursor": None},
        },
    )

    assert terminal("trust", "assess", "bto", "send_mony") == 0
    assert "nothing of it is trusted; did you mean bot?" in terminal.out
    assert "no tool send_mony is published for this project: did you mean send_money?" in terminal.out


def test_assess_of_arguments_that_are_no_object_is_a_usage_error(terminal: Terminal) -> None:
    asked = assessing(terminal)

    assert terminal("trust", "assess", "bot", "send_money", "--arguments", "[1]") == 2
    assert not asked
