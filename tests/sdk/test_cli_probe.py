"""`placet probe`, `client.probes`, and what people are told of a planted call, against a scripted gateway."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet import AsyncPlacet, Placet, probes
from tests.sdk.scripted import Asked, Scripted, serving
from tests.sdk.terminal import Terminal, gateway
from tests.sdk.threaded import serving_thread

PROBE: dict[str, Any] = {
    "execution_id": "e1",
    "call_id": "c1",
    "hold_id": "h1",
    "agent": "billing",
    "tool": "send_money",
    "arguments": {"amount": 987},
    "planted_by": "olga",
    "note": "ten times\x1b[31m too much",
    "wrong": ["/amount"],
    "result": None,
    "answers": [],
    "planted_at": "2026-11-20T10:00:00Z",
    "ended_at": None,
}
ANSWER = {"by": "rita", "person": "r", "decision": "approve", "caught": False}
ENDED = {**PROBE, "result": "missed", "answers": [ANSWER], "ended_at": "2026-11-20T10:01:00Z"}
PLANT = ("probe", "plant", "billing", "send_money")


def answering(terminal: Terminal, answer: Any, status: int = 200) -> list[Asked]:
    asked: list[Asked] = []

    async def on_http(request: Asked) -> Response:
        asked.append(request)
        return JSONResponse(answer, status)

    terminal.script.on_http = on_http
    return asked


def test_plant_sends_what_was_said_and_tells_the_hold(terminal: Terminal) -> None:
    asked = answering(terminal, PROBE, 201)
    given = ("--arguments", '{"amount": 987}', "--wrong", "/amount", "--wrong", "/to", "--request", "pay")
    more = ("--requester", "bot", "--execution", "march", "--after", "0.1")
    assert terminal(*PLANT, "--note", "too much", *given, *more) == 0
    opening, request = asked
    body = request.json()
    assert (opening.method, opening.path, opening.json()) == ("POST", "/v1/probes/runs", body)
    assert (request.method, request.path) == ("POST", "/v1/probes")
    assert body.pop("execution_id") == "march"
    assert body.pop("call_id")
    assert body == {
        "agent": "billing",
        "tool": "send_money",
        "arguments": {"amount": 987},
        "note": "too much",
        "wrong": ["/amount", "/to"],
        "requester": "bot",
        "request": "pay",
    }
    assert "planted: send_money of billing, hold h1" in terminal.out
    assert "the call follows within 0.1 s" in terminal.err


def _failing(terminal: Terminal, opening: int, planting: int) -> list[Asked]:
    """Let the two requests be answered by these statuses."""
    asked: list[Asked] = []

    async def on_http(request: Asked) -> Response:
        asked.append(request)
        status = opening if request.path.endswith("/runs") else planting
        code = "unavailable" if status == 503 else "not_authorised"
        return JSONResponse(
            PROBE if status == 201 else {"code": code, "status": status, "detail": "no"}, status
        )

    terminal.script.on_http = on_http
    return asked


@pytest.mark.parametrize(("opening", "planting"), [(201, 403), (201, 503), (503, 201)])
def test_plant_that_fails_once_a_run_can_be_open_names_it_and_how_to_end_it(
    terminal: Terminal, opening: int, planting: int
) -> None:
    asked = _failing(terminal, opening, planting)
    assert terminal(*PLANT, "--note", "x", "--after", "0") != 0
    run = asked[0].json()["execution_id"]
    said = " ".join(terminal.err.split())
    assert said.count(f"placet cancel {run}") == 1
    assert f"the run {run} {'was' if opening == 201 else 'may have been'} opened" in said
    assert (f"Its run {run} is open, and the call follows" in said) == (opening == 201)


def test_plant_that_is_interrupted_names_its_run_and_how_to_end_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(terminal, PROBE, 201)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("placet.blocking.Probes.plant", interrupted)
    assert terminal(*PLANT, "--note", "x", "--execution", "march") == 130
    assert "the run march may have been opened" in " ".join(terminal.err.split())
    assert asked == []


def test_plant_that_is_refused_at_once_leaves_no_run(terminal: Terminal) -> None:
    _failing(terminal, 403, 201)
    assert terminal(*PLANT, "--note", "x", "--after", "0") == 1
    assert "placet cancel" not in terminal.err
    assert "Its run" not in terminal.err


@pytest.mark.parametrize(
    ("tool", "agent", "meant"),
    [("send_mony", "billing", "send_money"), ("send_money", "bilings", "billing"), ("x", "y", "")],
)
def test_plant_of_a_name_that_nothing_has_tells_the_near_one(
    terminal: Terminal, tool: str, agent: str, meant: str
) -> None:
    answers: dict[str, Any] = {
        "/v1/tools": {"items": [{"name": "send_money", "version": "v1"}], "next_cursor": None},
        "/v1/agents": {"items": [{"agent": "billing", "tools": []}], "next_cursor": None},
    }

    async def on_http(request: Asked) -> Response:
        refused = {"code": "invalid", "status": 422, "detail": "no such name"}
        found = answers.get(request.path)
        return JSONResponse(found or refused, 200 if found else 422)

    terminal.script.on_http = on_http
    assert terminal("probe", "plant", agent, tool, "--note", "x") == 1
    assert terminal.err.strip() == f"invalid: no such name{meant and f': did you mean {meant}?'}"


@pytest.mark.parametrize("wrong", [("--note", " "), ("--note", "x", "--arguments", "[]"), ()])
def test_plant_without_a_note_or_arguments_is_wrong_usage(terminal: Terminal, wrong: tuple[str, ...]) -> None:
    asked = answering(terminal, PROBE, 201)
    assert terminal(*PLANT, *wrong) == 2
    assert asked == []


def test_list_tells_what_people_answered_and_what_waits(terminal: Terminal) -> None:
    answering(terminal, {"items": [PROBE, ENDED], "next_cursor": None})
    assert terminal("probe", "list") == 0
    for said in ("waits", "missed", "rita: approve", "olga", "too much"):
        assert said in terminal.out
    assert "\x1b[31m" not in terminal.out


def test_list_of_none_says_so(terminal: Terminal) -> None:
    answering(terminal, {"items": [], "next_cursor": None})
    assert terminal("probe", "list") == 0
    assert "Nothing was planted" in terminal.err


def test_reviewers_tells_how_many_planted_calls_were_missed(terminal: Terminal) -> None:
    row = dict.fromkeys(("approved", "edited", "rejected", "answered", "measured_approvals"), 1)
    times = {"last_decided_at": None, "average_wait_ms": None, "average_dwell_ms": None, "quick_share": None}
    probes = {"answered": 5, "missed": 0, "share": 0.0, "lower": 0.0, "upper": 0.521824}
    answering(
        terminal,
        {"items": [{"reviewer": "rita", **row, **times, "probes": probes}], "next_cursor": None},
    )
    assert terminal("reviewers") == 0
    assert "0 of 5 (0% to 52%)" in terminal.out


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("missed", "this call was planted, and never runs; not noticed: too\\u{1b}[31m much (at /amount)"),
        ("caught", "this call was planted, and never runs; you noticed: too\\u{1b}[31m much (at /amount)"),
    ],
)
def test_decision_on_a_planted_call_says_what_it_was(
    capsys: pytest.CaptureFixture[str], result: str, said: str
) -> None:
    probe = {"result": result, "note": "too\x1b[31m much", "wrong": ["/amount"]}

    async def answers(asked: Asked) -> Response:
        if asked.path.endswith("/decision"):
            return JSONResponse({"status": "resolved", "decision_id": "d1", "probe": probe})
        return await gateway(asked)

    edit = ("--arguments", '{"amount": 1}', "--yes")
    for decision in (("approve", "--yes"), ("reject", "--feedback", "no"), ("edit", *edit)):
        with serving_thread(Scripted(on_http=answers)) as script:
            terminal = Terminal(script, capsys)
            assert terminal(decision[0], "c0ffee", *decision[1:]) == 0
        assert said in " ".join(terminal.out.split())
        assert "\x1b[31m" not in terminal.out


def test_client_plants_and_lists() -> None:
    async def answers(asked: Asked) -> Response:
        if asked.method == "POST":
            return JSONResponse(PROBE, 201)
        return JSONResponse({"items": [ENDED], "next_cursor": None})

    with serving_thread(Scripted(on_http=answers)) as script, Placet(script.url, token="t") as client:
        said: dict[str, Any] = {
            "context": {"a": 1},
            "annotations": {"readOnlyHint": True},
            "run_context": {"b": 2},
        }
        given = {"amount": 987}
        planted = client.probes.plant("billing", "send_money", given, note="x", idle_s=60, after_s=0, **said)
        assert (planted.hold_id, planted.result, planted.answers) == ("h1", "", ())
        body = script.asked[-1].json()
        assert {name: body[name] for name in said} == said
        assert body["idle_seconds"] == 60
        (ended,) = client.probes.list()
    assert (ended.result, ended.wrong, ended.answers[0].by, ended.answers[0].caught) == (
        "missed",
        ("/amount",),
        "rita",
        False,
    )


async def test_async_client_plants() -> None:
    async def answers(asked: Asked) -> Response:
        return JSONResponse(PROBE, 201)

    async with serving(Scripted(on_http=answers)) as script, AsyncPlacet(script.url, token="t") as client:
        planted = await client.probes.plant("billing", "send_money", {}, note="x", after_s=0)
        assert planted.planted_by == "olga"


async def test_call_is_planted_as_long_after_the_start_of_its_run_as_is_said_or_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answers(asked: Asked) -> Response:
        return JSONResponse(PROBE, 201)

    waited: list[float] = []

    async def wait(seconds: float) -> None:
        assert script.asked[-1].path == "/v1/probes/runs"
        waited.append(seconds)

    async with serving(Scripted(on_http=answers)) as script, AsyncPlacet(script.url, token="t") as client:
        monkeypatch.setattr(probes, "asyncio", SimpleNamespace(sleep=wait))
        for after_s in (0.25, None, None):
            await client.probes.plant("billing", "send_money", {}, note="x", after_s=after_s)
        count = len(script.asked)
        for wrong in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="after_s"):
                await client.probes.plant("billing", "send_money", {}, note="x", after_s=wrong)
        assert len(script.asked) == count
    said, *drawn = waited
    assert said == 0.25
    assert len(set(drawn)) == 2
    assert all(probes.AFTER_S[0] <= one <= probes.AFTER_S[1] for one in drawn)
