"""Lists and events on a terminal of 80 columns: no id and no word is broken, and times have their zone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli.lines import print_rows
from tests.sdk.scripted import Asked
from tests.sdk.terminal import RAN, Terminal, on_a_screen, plain

COLUMNS = 80
RUN = "0198c0de-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
CALL = "9f8e7d6c-5b4a-7938-8271-605f4e3d2c1b"
DIGEST = "ab" * 32
WHO = "treasurer@accounts.example"
REPEAT: dict[str, Any] = {
    "event_id": "a1",
    "subject": WHO,
    "action": "respond_refused",
    "at": "2026-11-20T10:00:00Z",
    "execution_id": RUN,
    "call_id": CALL,
    "digest": DIGEST,
    "after": {"code": "duplicate", "subject_id": None},
    "result": {"status": "outcome_unknown"},
}
REFUSED = {**REPEAT, "event_id": "a2", "after": {"code": "not_authorised", "winning_decision_id": None}}
# What is after an edit are the arguments, whatever their names.
EDITED = {**REPEAT, "event_id": "a3", "action": "edit", "after": {"code": "duplicate"}}
STARTED = {
    "execution_id": RUN,
    "agent": "billing-bot",
    "state": "waiting_clarification",
    "started_at": "2026-11-20T10:00:00Z",
    "request": "Pay the invoices of March.",
}
ASKED_OF_AN_AGENT = "Please look at every invoice of March, and pay those of which the amount is right."
PROPOSED = {
    "event_id": "e1",
    "type": "ToolCallProposed",
    "at": "2026-11-20T10:00:00.123Z",
    "execution_id": RUN,
    "data": {
        "by": WHO,
        "call_id": CALL,
        "digest": DIGEST,
        "arguments": json.dumps(
            {"note": ASKED_OF_AN_AGENT, "payees": [{"iban": "GB29"}, "DE02"], "left": {}}
        ),
        "note": "not \u202e{json}",
        "text": "[neither",
        "attempt": 1,
        "nothing": "",
    },
}


@pytest.fixture(params=["Europe/Berlin", "UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield time.strftime("UTC%z")[:6].replace("+00", "") + (":00" if request.param != "UTC" else "")
    time.tzset()


def answers(terminal: Terminal, found: dict[str, list[Any]]) -> None:
    """Let the gateway answer lists with these items."""
    others = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        if asked.path not in found:
            return await others(asked)
        items = found[asked.path]
        if asked.params.get("cursor") is None and len(items) > 1:
            # Two pages, the first with one item.
            return JSONResponse({"items": items[:1], "next_cursor": "2", "cursor": "k0"})
        rest = items[1:] if len(items) > 1 else items
        return JSONResponse({"items": rest, "next_cursor": None, "cursor": "k0"})

    terminal.script.on_http = answer


def shown(terminal: Terminal) -> list[str]:
    lines = plain(terminal.out).splitlines()
    assert all(len(line) <= COLUMNS for line in lines), lines
    return lines


def words(lines: list[str]) -> set[str]:
    return {word for line in lines for word in line.split()}


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        (
            ("audit",),
            {RUN, CALL[:12], DIGEST[:12], "respond_refused", "not_authorised", "outcome_unknown", WHO},
        ),
        (("audit", "impact", "--rule", "r"), {RUN, CALL[:12], DIGEST[:12], "succeeded", "policy", "t" * 40}),
        (("executions",), {RUN, "billing-bot", "waiting_clarification", "2026-11-20"}),
        (("policy", "versions", "office"), {"12", "2026-11-20", f"{WHO}.and.many.more.of.them"}),
    ],
    ids=["audit", "audit impact", "executions", "versions"],
)
def test_list_on_80_columns_breaks_no_id_and_no_word(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], whole: set[str]
) -> None:
    version = {
        "version": 12,
        "published_at": STARTED["started_at"],
        "published_by": f"{WHO}.and.many.more.of.them",
    }
    ran = {**RAN, "execution_id": RUN, "call_id": CALL, "digest": DIGEST, "tool": "t" * 40, "agent": "a-bot"}
    found = {
        "/v1/audit": [REPEAT, REFUSED],
        "/v1/audit/impact": [ran, ran],
        "/v1/executions": [STARTED, STARTED],
        "/v1/policies/office/versions": [version, version],
    }
    answers(terminal, found)
    on_a_screen(monkeypatch, COLUMNS)
    assert terminal(*command) == 0
    lines = shown(terminal)
    assert whole <= words(lines)
    assert sum(not line.startswith(" ") for line in lines) == 3, "the head and two records begin in column 1"
    assert len(lines) <= 9


def test_tools_on_80_columns_are_a_line_each_with_the_description_below(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
    tool = {"name": "book_a_room", "version": 3, "project": "default", "annotations": hints}
    answers(terminal, {"/v1/tools": [{**tool, "description": ASKED_OF_AN_AGENT}] * 2})
    on_a_screen(monkeypatch, COLUMNS)
    assert terminal("tools") == 0
    lines = shown(terminal)
    assert {"book_a_room", "default", "openWorldHint"} <= words(lines)
    assert sum(not line.startswith(" ") for line in lines) == 3
    assert ASKED_OF_AN_AGENT in " ".join(" ".join(lines).split())


def test_audit_through_a_pipe_is_a_line_for_each_act(terminal: Terminal) -> None:
    answers(terminal, {"/v1/audit": [REPEAT, REFUSED]})
    assert terminal("audit") == 0
    head, first, second = terminal.out.splitlines()
    assert head.split()[0] == "at"
    assert {"duplicate", RUN} <= set(first.split())
    assert "not_authorised" in second


def test_cell_that_is_wider_than_the_terminal_is_left_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_screen(monkeypatch, 20)
    print_rows(("name", "id", "end"), [("n", "x" * 50, ""), ("n", "", "e")], "none")
    assert [line.rstrip() for line in plain(capsys.readouterr().out).splitlines()] == [
        *("name", "  id", "  end"),
        *("n", "  " + "x" * 50),
        *("n", "  -", "  e"),
    ]


def test_words_of_an_agent_that_are_wider_than_the_terminal_begin_no_record(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_screen(monkeypatch, 20)
    print_rows(("name", "tool"), [("n", "x" * 30 + " approve by anna"), ("m", "")], "none")
    head, *lines = [line.rstrip() for line in plain(capsys.readouterr().out).splitlines()]
    assert head == "name"
    assert [line for line in lines if not line.startswith(" ")] == ["n", "m"]


def test_audit_leaves_repeats_out_of_every_page_but_no_edit(terminal: Terminal) -> None:
    answers(terminal, {"/v1/audit": [REPEAT, REFUSED, EDITED, REPEAT]})
    assert terminal("audit", "--no-repeats", "--json") == 0
    assert [row["event_id"] for row in json.loads(terminal.out)] == ["a2", "a3"]
    assert [asked.params.get("cursor") for asked in terminal.script.asked] == [None, "2"]
    assert terminal("audit", "--no-repeats") == 0
    assert "not_authorised" in terminal.out
    assert "duplicate" not in terminal.out


@pytest.mark.parametrize(
    ("command", "head"),
    [
        (("inbox",), "waits until"),
        (("inbox", "--grouped"), "oldest"),
        (("executions",), "started"),
        (("audit",), "at"),
        (("policy", "list"), "published"),
    ],
    ids=" ".join,
)
def test_list_names_the_zone_of_its_times_once(
    terminal: Terminal, zone: str, command: tuple[str, ...], head: str
) -> None:
    assert terminal(*command) == 0
    assert f"{head} ({zone})" in terminal.out.splitlines()[0]
    assert terminal.out.count(zone) == 1


def test_times_before_a_change_of_the_clocks_have_the_offset_of_the_head(
    terminal: Terminal, zone: str
) -> None:
    times = ("2026-01-20T10:00:00Z", "2026-07-20T10:00:00Z")
    answers(terminal, {"/v1/audit": [{**REPEAT, "at": at} for at in times]})
    assert terminal("audit") == 0
    assert len({line.split()[1] for line in terminal.out.splitlines()[1:]}) == 1


def test_event_at_a_terminal_is_a_line_and_its_fields_with_json_within_it_read(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(terminal, {f"/v1/executions/{RUN}/events": [PROPOSED], "/v1/executions": [STARTED]})
    on_a_screen(monkeypatch, COLUMNS)
    assert terminal("events") == 0
    assert shown(terminal) == [
        f"2026-11-20T10:00:00.123Z  ToolCallProposed  {WHO}",
        f"  execution: {RUN}",
        f"  call_id: {CALL}",
        f"  digest: {DIGEST}",
        "  arguments:",
        "    note: Please look at every invoice of March, and pay those of which the",
        "      amount is right.",
        "    payees:",
        "      -",
        "        iban: GB29",
        "      - DE02",
        "    left: {}",
        "  note: not \\u{202e}{json}",
        "  text: [neither",
        "  attempt: 1",
    ]


def test_event_through_a_pipe_is_one_line(terminal: Terminal) -> None:
    answers(terminal, {f"/v1/executions/{RUN}/events": [PROPOSED], "/v1/executions": [STARTED]})
    assert terminal("events") == 0
    (line,) = terminal.out.splitlines()
    told = json.loads(line[line.index("{") :].replace("\\u{202e}", ""))
    assert json.loads(told["arguments"])["note"] == ASKED_OF_AN_AGENT
    assert line.startswith(f"2026-11-20T10:00:00.123Z    ToolCallProposed       {RUN} ")
