"""`placet trust`, `placet reviewers`, and what `placet show` tells of trust, against a scripted gateway."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli.session import local_time
from placet.cli.trust import at_least
from tests.sdk.scripted import Asked
from tests.sdk.terminal import HOLD, Terminal

FACT = {
    "kind": "approval",
    "at": "2026-11-20T10:00:00Z",
    "by": ["rita", "tess"],
    "requester": "bot",
    "execution_id": "march",
    "call_id": "c1",
    "partition": 3,
    "offset": 77,
    "raising": 0.5,
    "lowering": 0.0,
}
CLASS = {
    "tool": "send_money",
    "trust_class": "amount=1e2&risk=money",
    "lower_bound": 0.838433,
    "required": 0.8974,
    "raising": 16.0,
    "lowering": 0.25,
    "facts": 17,
    "evidence": [],
}
ADAPTIVE = {"why": "trust is enough", "lower_bound": 0.95, "required": 0.9, "floor": 0, "sample_rate": 0.05}


def answering(terminal: Terminal, answers: dict[str, Any]) -> list[Asked]:
    """Let the gateway answer these paths, and everything else as before."""
    asked: list[Asked] = []
    others = terminal.script.on_http

    async def answer(request: Asked) -> Response:
        asked.append(request)
        found = answers.get(request.path)
        return await others(request) if found is None else JSONResponse(found)

    terminal.script.on_http = answer
    return asked


def test_explain_lists_the_classes_and_with_a_tool_their_facts(terminal: Terminal) -> None:
    path = "/v1/agents/billing-bot/trust/classes"
    asked = answering(terminal, {path: {"agent": "billing-bot", "lower_bound": 0.8, "classes": [CLASS]}})

    assert terminal("trust", "explain", "billing-bot") == 0
    for said in ("send_money", "0.8384", "0.8974", "16", "0.25", "amount=1e2&risk=money"):
        assert said in terminal.out

    assert "Trust is missing" not in terminal.err
    answering(terminal, {path: {"agent": "billing-bot", "complete": False, "classes": [CLASS]}})
    assert terminal("trust", "explain", "billing-bot") == 0
    assert "Trust is missing now" in terminal.err

    anew = {**FACT, "raising": 0.0, "uncounted": "before_it_began_anew"}
    answering(terminal, {path: {"classes": [{**CLASS, "evidence": [FACT, anew]}]}})
    moment = "2026-11-21T00:00:00Z"
    assert terminal("trust", "explain", "billing-bot", "send_money", "--at", moment) == 0
    for said in (
        "trust is at least 0.8384",
        "the risk requires 0.8974",
        "rita, tess",
        "0.5",
        "3@77",
        "march",
        "0 (before it was begun anew)",
    ):
        assert said in terminal.out
    assert dict(asked[0].params) == {}


def test_explain_follows_the_pages_at_the_moment_of_the_first(terminal: Terminal) -> None:
    names = [f"amount=1e{number}&risk=money" for number in range(5)]
    asked: list[dict[str, str]] = []
    others = terminal.script.on_http

    async def answer(request: Asked) -> Response:
        if not request.path.endswith("/trust/classes"):
            return await others(request)
        asked.append(dict(request.params))
        begin = int(request.params.get("cursor", 0))
        classes = [{**CLASS, "trust_class": name} for name in names[begin : begin + 2]]
        following = str(begin + 2) if begin + 2 < len(names) else None
        moment = "2026-11-20T10:00:00.000Z"
        page = {"agent": "bot", "at": moment, "lower_bound": 0.7, "classes": classes}
        return JSONResponse({**page, "next_cursor": following})

    terminal.script.on_http = answer

    assert terminal("trust", "explain", "bot", "--json") == 0
    found = json.loads(terminal.out)
    assert [one["trust_class"] for one in found["classes"]] == names
    assert (found["lower_bound"], found["next_cursor"]) == (0.7, None)
    moment = {"at": "2026-11-20T10:00:00.000Z"}
    assert asked == [{}, {**moment, "cursor": "2"}, {**moment, "cursor": "4"}]
    assert terminal("trust", "explain", "bot") == 0
    assert all(name in terminal.out for name in names)


def test_explain_of_an_answer_without_classes_says_that_it_does_not_fit(terminal: Terminal) -> None:
    answering(terminal, {"/v1/agents/bot/trust/classes": {"page": "of a proxy"}})

    assert terminal("trust", "explain", "bot") == 1
    assert "expected a list of classes" in terminal.err


def test_explain_leaves_out_a_required_trust_that_the_gateway_does_not_know(terminal: Terminal) -> None:
    path = "/v1/agents/billing-bot/trust/classes"
    for unknown in ({**CLASS, "required": None}, {name: CLASS[name] for name in CLASS if name != "required"}):
        answering(terminal, {path: {"classes": [unknown]}})
        for tool in ((), ("send_money",)):
            assert terminal("trust", "explain", "billing-bot", *tool) == 0
            assert "None" not in terminal.out
            assert "the risk requires" not in terminal.out


def test_explain_of_an_agent_without_facts_says_so(terminal: Terminal) -> None:
    path = "/v1/agents/billing-bot/trust/classes"
    used = {"items": [{"agent": "billing-bot", "tools": [{"tool": ""}, {"tool": "send_money"}]}]}
    answering(terminal, {path: {"classes": []}, "/v1/agents": used})

    assert terminal("trust", "explain", "billing-bot") == 0
    assert "calls of billing-bot counts now: there is none, or each is older than 180 days." in terminal.err
    assert terminal("trust", "explain", "billing-bot", "send_money") == 0
    assert "No decision of people on calls of send_money by billing-bot counts now" in terminal.out


@pytest.mark.parametrize("more", [(), ("--json",), ("--at", "2026-11-21T00:00:00Z")])
def test_explain_of_a_tool_that_the_agent_never_used_names_those_that_it_used(
    terminal: Terminal, more: tuple[str, ...]
) -> None:
    tools = [{"tool": "send_money"}, {"tool": ""}, {"tool": "read_file"}]
    agents = [{"agent": "other", "tools": [{"tool": "sendmoney"}]}, {"agent": "billing-bot", "tools": tools}]
    path = "/v1/agents/billing-bot/trust/classes"
    answering(terminal, {path: {"classes": []}, "/v1/agents": {"items": agents}})

    assert terminal("trust", "explain", "billing-bot", "sendmoney", *more) == 1

    assert "billing-bot never used sendmoney: it used read_file, send_money" in " ".join(terminal.err.split())
    assert terminal.out == ""


def test_report_since_a_time_to_come_says_so(terminal: Terminal) -> None:
    calls = {"held": 0, "released": 0, "sampled": 0, "asked": 0, "interruptions": 0, "saved": None}
    share = {"share": None, "lower": 0, "upper": 1, "confidence": 0.95}
    sample, regret = (
        {**share, "decided": 0, "contrary": 0},
        {**share, "released": 0, "revoked": 0, "harmful": 0},
    )
    found: dict[str, Any] = {**calls, "agents": [], "sample": sample, "regret": regret}
    answering(terminal, {"/v1/metrics/approval": found})

    assert terminal("trust", "report", "--since", "2999-01-01T00:00:00Z") == 0
    assert "2999-01-01T00:00:00Z is in the future" in terminal.err
    assert terminal("trust", "report", "--since", "2020-01-01T00:00:00Z") == 0
    assert "future" not in terminal.err


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("2020-01-05T12:00:00Z", "there was none yet, or each was older than 180 days."),
        ("2999-01-05T12:00:00Z", "each is older than 180 days by then."),
    ],
)
def test_explain_at_a_time_says_why_no_decision_counts_then(terminal: Terminal, at: str, said: str) -> None:
    answering(terminal, {"/v1/agents/billing-bot/trust/classes": {"classes": []}})

    assert terminal("trust", "explain", "billing-bot", "--at", at) == 0

    assert f"No decision of people on calls of billing-bot counts at {at}: {said}" in terminal.err
    assert ("is in the future: as trust will be then" in terminal.err) is at.startswith("2999")


@pytest.mark.parametrize("command", [("explain", "bot/pay"), ("assess", "bot/pay", "pay")])
def test_agent_with_a_slash_is_wrong_usage_that_says_how_to_name_a_tool(
    command: tuple[str, ...], terminal: Terminal
) -> None:
    assert terminal("trust", *command) == 2
    assert "give the agent, and after it the tool" in " ".join(terminal.err.replace("│", " ").split())
    assert terminal.script.asked == []


def test_report_tells_what_was_saved_with_the_upper_bounds(terminal: Terminal) -> None:
    calls = {"held": 40, "released": 30, "sampled": 4, "asked": 6, "interruptions": 10, "saved": 0.75}
    found = {
        **calls,
        "agents": [{"agent": "billing-bot", **calls}],
        "sample": {
            "decided": 4,
            "contrary": 1,
            "withdrawn": 2,
            "expired": 0,
            "waiting": 1,
            "share": 0.25,
            "lower": 0.0,
            "upper": 0.8059,
            "confidence": 0.95,
        },
        "regret": {"released": 30, "revoked": 0, "harmful": 0, "share": None, "upper": 1, "confidence": 0.95},
    }
    answering(terminal, {"/v1/metrics/approval": found})

    assert terminal("trust", "report", "--agent", "billing-bot") == 0
    assert "75.0%" in terminal.out
    assert "nobody decided: 2 withdrawn with their run, which counts against the agent, 1 waiting." in (
        " ".join(terminal.out.split())
    )
    assert "1 of 4 sampled calls was not approved unchanged: 25.0%, 0.0% to 80.6% with 95% confidence." in (
        " ".join(terminal.out.split())
    )
    assert "taken back" not in terminal.out
    assert "trust released a call and nobody was asked about it: 30 of 40.\n" in terminal.out

    found["regret"] = {
        "released": 24,
        "revoked": 1,
        "harmful": 1,
        "share": 2 / 24,
        "upper": 0.27,
        "confidence": 0.95,
    }
    assert terminal("trust", "report") == 0
    assert (
        "Of 24 calls that nobody was asked about, 1 was taken back and 1 did harm, together: 8.3%, 0.0% to 27.0%"
    ) in " ".join(terminal.out.split())
    assert (
        "30 of 40. Without the 2 that were taken back or did harm afterwards: 28 of 40, 70.0%."
        in terminal.out
    )


def test_report_counts_all_that_the_gateway_had_read(terminal: Terminal) -> None:
    """Its views are behind that for a moment; if they stay behind, what they have is told, and that it is not all."""
    calls = {"held": 1, "released": 0, "sampled": 0, "asked": 1, "interruptions": 1, "saved": 0.0}
    share = {"share": None, "lower": 0.0, "upper": 1.0, "confidence": 0.95}
    found = {
        **calls,
        "agents": [{"agent": "billing-bot", **calls}],
        "sample": {"decided": 0, "contrary": 0, "withdrawn": 0, "expired": 0, "waiting": 0, **share},
        "regret": {"released": 0, "revoked": 0, "harmful": 0, **share},
        "since": "2026-11-01T00:00:00Z",
        "until": "2026-11-30T12:00:00Z",
        "cursor": "k1",
    }
    are_behind = False

    async def on_http(request: Asked) -> Response:
        if request.params.get("after") != "k1":
            return JSONResponse({**found, "agents": []})
        problem = {"code": "unavailable", "status": 503, "detail": "the views have not read that far yet"}
        return JSONResponse(problem if are_behind else found, 503 if are_behind else 200)

    terminal.script.on_http = on_http
    assert terminal("trust", "report") == 0
    assert "billing-bot" in terminal.out
    until = local_time("2026-11-30T12:00:00Z")
    assert terminal.out.splitlines()[-1] == f"From {local_time('2026-11-01T00:00:00Z')} to {until}."

    are_behind = True
    assert terminal("trust", "report") == 0
    assert "billing-bot" not in terminal.out
    assert "The views are behind" in terminal.err


REVIEWER = {
    "reviewer": "rita",
    "approved": 3,
    "edited": 1,
    "rejected": 0,
    "answered": 2,
    "last_decided_at": "2026-11-20T10:00:00Z",
    "average_wait_ms": 600_000,
    "average_dwell_ms": 4_200,
    "measured_approvals": 2,
    "quick_approvals": 1,
    "quick_share": 0.5,
}


def test_reviewers_tells_how_fast_and_how_closely_people_look(terminal: Terminal) -> None:
    answering(terminal, {"/v1/reviewers": {"items": [REVIEWER], "next_cursor": None}})

    assert terminal("reviewers") == 0
    for said in ("rita", "10 min", "4.2 s", "50% of 2"):
        assert said in terminal.out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"result": "asked", "why": "the rule always asks"},
            "trust: not released by it: the rule always asks",
        ),
        (
            {"result": "sampled"},
            "trust: would have released it, and people are asked as a sample: it is at least 0.95",
        ),
    ],
)
def test_show_tells_the_person_who_is_asked_what_trust_made_of_the_call(
    terminal: Terminal, changes: dict[str, Any], said: str
) -> None:
    verdict = {"effect": "hold", "rules": ["p@1/r"], "adaptive": {**ADAPTIVE, **changes}}
    answering(terminal, {f"/v1/holds/{HOLD['hold_id']}": {**HOLD, "verdict": verdict}})

    assert terminal("show", HOLD["hold_id"]) == 0
    assert said in terminal.out


@pytest.mark.parametrize("place", ["@1234", "3@1234"])
def test_state_at_the_place_of_a_fact_asks_for_it(terminal: Terminal, place: str) -> None:
    assert terminal("state", "invoice", "--at", place, "--json") == 0
    assert json.loads(terminal.out)["at"] == place
    assert terminal.err == ""


@pytest.mark.parametrize("place", ["3@", "@x", "3@1@2"])
def test_state_at_what_is_no_place_is_wrong_usage(terminal: Terminal, place: str) -> None:
    assert terminal("state", "invoice", "--at", place) == 2
    assert "nor an offset as @123" in " ".join(terminal.err.split())


@pytest.mark.parametrize(
    ("bound", "told"),
    [(0.794199, "0.7941"), (0.904966, "0.9049"), (0.29, "0.2900"), (0.0, "0.0000"), (1e-7, "0.0000")],
)
def test_lower_bound_is_told_as_no_more_than_it_is(bound: float, told: str) -> None:
    assert at_least(bound) == told


def test_heading_that_is_piped_is_one_line(terminal: Terminal) -> None:
    name = f"to=@example.com&risk={'novel:to,' * 40}writes"
    one = {
        **dict.fromkeys(("lower_bound", "raising", "lowering"), 0.5),
        "tool": "pay",
        "trust_class": name,
        "required": 0.9,
        "evidence": [],
    }
    answering(terminal, {"/v1/agents/bot/trust/classes": {"classes": [one], "next_cursor": None}})

    assert terminal("trust", "explain", "bot", "pay") == 0

    heading = next(line for line in terminal.out.splitlines() if line.startswith("pay, calls of the class"))
    assert name in heading
    assert heading.endswith("the risk requires 0.9000")


def test_each_column_of_the_reviewers_is_defined_in_the_help_and_in_the_docs(terminal: Terminal) -> None:
    answering(terminal, {"/v1/reviewers": {"items": [REVIEWER], "next_cursor": None}})
    assert terminal("reviewers") == 0
    head = terminal.out.splitlines()[0].partition("(")[0]
    columns = re.split(r" {2,}", head.strip())
    assert len(columns) == 10
    page = (Path(__file__).parents[2] / "docs/display.md").read_text("utf-8")
    defined = [
        cell.strip()
        for row in re.findall(r"^\| ([a-z, ]+) \|", page, re.MULTILINE)
        for cell in row.split(",")
    ]
    assert set(columns) <= set(defined)

    assert terminal("reviewers", "--help") == 0
    told = " ".join(terminal.out.split())
    assert [name for name in columns[1:] if name not in told] == []


@pytest.mark.parametrize("command", [("explain", "billing-bt"), ("report", "--agent", "billing-bt")])
def test_agent_that_does_not_exist_is_told_with_one_of_a_near_name(
    terminal: Terminal, command: tuple[str, ...]
) -> None:
    row = {"agent": "billing-bot", "tools": []}
    answering(terminal, {"/v1/agents": {"items": [row, {**row, "agent": "other"}], "next_cursor": None}})

    assert terminal("trust", *command) == 1
    assert "did you mean billing-bot?" in " ".join(terminal.err.split())
