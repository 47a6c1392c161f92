"""`placet report-impact`, against a scripted gateway."""

import pytest
from starlette.responses import JSONResponse, Response

from tests.sdk.scripted import Asked
from tests.sdk.terminal import HOLD, RAN, Terminal


def test_report_impact_says_what_was_reported_and_by_how_many(terminal: Terminal) -> None:
    asked: list[Asked] = []

    async def answer(request: Asked) -> Response:
        asked.append(request)
        reports = 2 if request.method == "POST" else 1
        return JSONResponse({**HOLD, "call_id": "c1", "status": "succeeded", "impact_reports": reports})

    terminal.script.on_http = answer
    assert terminal("report-impact", "invoice-march", "c1", "--reason", "paid twice") == 0
    assert asked[-1].path == "/v1/executions/invoice-march/tool-calls/c1/report-impact"
    assert asked[-1].json() == {"reason": "paid twice"}
    assert terminal.out.startswith("reported: send_money invoice-march/c1 (succeeded), by 2 so far")


def test_report_impact_again_says_that_it_was_reported_before(terminal: Terminal) -> None:
    async def answer(request: Asked) -> Response:
        return JSONResponse({**HOLD, "status": "succeeded", "impact_reports": 2})

    terminal.script.on_http = answer
    assert terminal("report-impact", "invoice-march", "c1", "--reason", "paid thrice") == 0
    assert "reported before, and nothing was added, nor is this reason recorded: send_money" in terminal.out


@pytest.mark.parametrize(
    "named", [("invoice-march/c0ffee",), ("invoice/c0f",), ("invoice-march", "c0ff"), ("invoice", "c0ffee")]
)
@pytest.mark.parametrize("command", ["report-impact", "revoke"])
def test_call_is_named_as_show_names_it_also_by_beginnings(
    command: str, named: tuple[str, ...], terminal: Terminal
) -> None:
    everything, posted = terminal.script.on_http, list[str]()

    async def answer(asked: Asked) -> Response:
        path = asked.path.removeprefix("/v1/executions/invoice-march/tool-calls")
        if path == "":
            return JSONResponse({"items": [RAN], "next_cursor": None})
        if path in ("/c0ffee", "/c0ffee/report-impact", "/c0ffee/revoke"):
            if asked.method == "POST":
                posted.append(path)
            return JSONResponse({**RAN, "impact_reports": len(posted)})
        return await everything(asked)

    terminal.script.on_http = answer
    assert terminal(command, *named, "--reason", "harm") == 0
    assert posted == [f"/c0ffee/{command}"]
    assert "send_money invoice-march/c0ffee" in terminal.out


@pytest.mark.parametrize("command", ["report-impact", "revoke"])
def test_call_without_its_own_id_is_wrong_usage_that_says_how_to_name_it(
    command: str, terminal: Terminal
) -> None:
    assert terminal(command, "invoice-march", "--reason", "harm") == 2
    assert "EXECUTION/CALL" in terminal.err
    assert terminal.script.asked == []


@pytest.mark.parametrize("reason", [(), ("--reason", "")])
def test_report_impact_without_a_reason_is_wrong_usage(terminal: Terminal, reason: tuple[str, ...]) -> None:
    assert terminal("report-impact", "invoice-march", "c1", *reason) == 2
    assert terminal.script.asked == []


def test_report_impact_of_a_call_that_has_not_run_is_refused(terminal: Terminal) -> None:
    async def answer(request: Asked) -> Response:
        if request.method == "GET":
            return JSONResponse({**HOLD, "impact_reports": 0})
        return JSONResponse({"code": "not_open", "detail": "the call is held: reject it"}, 409)

    terminal.script.on_http = answer
    assert terminal("report-impact", "e1", "c1", "--reason", "harm") == 1
    assert "the call is held" in terminal.err


def test_show_says_how_many_have_reported_a_call(terminal: Terminal) -> None:
    everything = terminal.script.on_http
    shown: dict[str, object] = {**RAN, "impact_reports": 2}

    async def answer(asked: Asked) -> Response:
        if asked.path.endswith("/tool-calls"):
            return JSONResponse({"items": [shown], "next_cursor": None})
        return JSONResponse(shown) if asked.path.endswith("/c0ffee") else await everything(asked)

    terminal.script.on_http = answer
    assert terminal("show", "invoice-march/c0ffee") == 0
    assert "reported as harmful by 2" in terminal.out
    shown["impact_reports"] = 0
    assert terminal("show", "invoice-march/c0ffee") == 0
    assert "reported as harmful" not in terminal.out
