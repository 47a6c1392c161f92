"""What the command prints where a terminal, a text or a moment is unusual."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli.app import explained
from placet.cli.session import Ambiguous, by_prefix, clock
from placet.cli.viewing import until
from placet.errors import Refused
from placet.models import Hold
from tests.sdk.scripted import Asked
from tests.sdk.terminal import EXECUTION, HOLD, OTHER, RAN, TOOL, Terminal, on_a_screen, plain


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminal_that_is_not_utf8_shows_what_it_has_no_character_for_escaped(
    terminal: Terminal, encoding: str
) -> None:
    holds = terminal.script.on_http

    async def answer(request: Asked) -> Response:
        if request.path == "/v1/holds":
            return JSONResponse({"items": [{**HOLD, "question": "Pay 5 € — now…"}], "next_cursor": None})
        return await holds(request)

    terminal.script.on_http = answer
    code = "import sys; from placet.cli import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--url", terminal.script.url, "--token", "t", "inbox"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Pay 5 \\u20ac \\u2014 now\\u2026" in done.stdout


FULL = Path("/dev/full")


@pytest.mark.parametrize(
    "command",
    [
        ["inbox"],
        ["inbox", "--json"],
        ["tools", "--json"],
        ["show", "5b0a1f6e-2"],
        ["--help"],
        ["--version"],
        ["policy", "check", "--help"],
    ],
)
def test_output_that_cannot_be_written_is_one_line_and_no_success(
    terminal: Terminal, command: list[str]
) -> None:
    code = "from placet.cli import main; main()"
    words = [sys.executable, "-c", code, "--url", terminal.script.url, "--token", "t", *command]
    with FULL.open("wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.stderr.decode() == "the output could not be written: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    "command",
    [["inbox"], ["inbox", "--json"], ["tools", "--json"], ["show", "5b0a1f6e-2"], ["--help"], ["--version"]],
)
@pytest.mark.parametrize("buffering", ["", "1"], ids=["at-the-end", "at-once"])
def test_output_that_nobody_reads_any_more_ends_quietly_as_by_sigpipe(
    terminal: Terminal, command: list[str], buffering: str
) -> None:
    code = "from placet.cli import main; main()"
    words = [sys.executable, "-c", code, "--url", terminal.script.url, "--token", "t", *command]
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONUNBUFFERED": buffering}
    try:
        done = subprocess.run(
            words, env=environment, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_refusal_whose_words_cannot_be_written_keeps_its_exit_code(terminal: Terminal) -> None:
    code = "from placet.cli import main; main()"
    words = [sys.executable, "-c", code, "--url", "http://127.0.0.1:1", "--token", "t", "inbox"]
    with FULL.open("wb") as full:
        done = subprocess.run(words, stdout=full, stderr=full, timeout=60, check=False)
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["c0", "c1", "c2"], "c matches 3 calls of this execution (c0, c1, c2): give more characters"),
        (
            [f"c{n}" for n in range(6)],
            "c matches 6 calls of this execution (c0, c1, c2, c3, c4 …): give more characters",
        ),
    ],
)
def test_several_that_a_beginning_fits_are_counted_in_words_that_are_english(
    ids: list[str], said: str
) -> None:
    what, several = "call of this execution", "calls of this execution"
    with pytest.raises(Ambiguous, match=re.escape(said)):
        by_prefix(ids, "c", lambda one: (one,), what, several=several)


def test_several_are_listed_by_the_ids_that_begin_so() -> None:
    holds = [("hold-1", "call-1"), ("hold-2", "c2-call"), ("c3-hold", "other")]
    with pytest.raises(Ambiguous, match=re.escape("c matches 3 holds (call-1, c2-call, c3-hold): give")):
        by_prefix(holds, "c", lambda one: one, "hold")


def test_several_calls_that_a_beginning_fits_are_called_so(terminal: Terminal) -> None:
    everything = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        if asked.path.endswith("/tool-calls"):
            calls = [{"execution_id": "e1", "call_id": f"c{n}", "status": "held"} for n in range(3)]
            return JSONResponse({"items": calls, "next_cursor": None})
        if asked.path == "/v1/executions/e1":
            return JSONResponse({"execution_id": "e1", "state": "running"})
        return await everything(asked)

    terminal.script.on_http = answer
    assert terminal("show", "e1/c") == 1
    assert "c matches 3 calls of this execution (c0, c1, c2): give more characters" in terminal.err


def test_question_that_is_cut_ends_with_an_ellipsis(terminal: Terminal) -> None:
    holds = terminal.script.on_http

    async def answer(request: Asked) -> Response:
        if request.path == "/v1/holds":
            items = [{**HOLD, "question": "x" * 100}, {**OTHER, "question": "y" * 101}]
            return JSONResponse({"items": items, "next_cursor": None})
        return await holds(request)

    terminal.script.on_http = answer
    assert terminal("inbox") == 0
    said = terminal.out.replace("\n", "").replace(" ", "")
    assert "x" * 100 in said
    assert "y" * 99 + "…" in said


def test_inbox_shows_who_works_on_a_hold_and_how_an_unknown_outcome_is_settled(terminal: Terminal) -> None:
    holds = terminal.script.on_http
    question = (
        "It is unknown whether pay had its effect. To run it again, while its run goes on: placet approve. "
    )
    question += "More. " * 20

    async def answer(request: Asked) -> Response:
        if request.path == "/v1/holds":
            lea = {"claimed_by": "lea", "claimed_until": "2026-11-21T05:00:00Z"}
            items = [
                {**HOLD, **lea},
                {**OTHER, "cause": "outcome_unknown", "question": question + "The end."},
            ]
            return JSONResponse({"items": items, "next_cursor": None})
        return await holds(request)

    terminal.script.on_http = answer
    assert terminal("inbox") == 0
    said = " ".join(plain(terminal.out).split())
    assert "claimed by lea until 2026-11-21" in said
    assert "The end." in said


@pytest.mark.parametrize(("columns", "below"), [(60, True), (89, True), (120, False)])
def test_inbox_of_a_narrow_terminal_has_the_question_below_the_row_and_breaks_no_word(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int, below: bool
) -> None:
    holds = terminal.script.on_http
    request = "Please look at the invoices of March " * 11

    async def answer(asked: Asked) -> Response:
        if asked.path == "/v1/holds":
            items = [{**HOLD, "question": "Pay 98.70 to GB29?", "request": request}, OTHER]
            return JSONResponse({"items": items, "next_cursor": None})
        return await holds(asked)

    terminal.script.on_http = answer
    on_a_screen(monkeypatch, columns)
    assert terminal("inbox") == 0
    lines = [line.rstrip() for line in plain(terminal.out).splitlines()]
    assert all(len(line) <= columns for line in lines)
    assert ("  Pay 98.70 to GB29?" in lines) is below
    if below:
        assert {"invoices", "send_money", "billing-bot"} <= {word for line in lines for word in line.split()}
        assert len(lines) <= 12
    assert sum("…" in line for line in lines) == 1, "the request is cut"


@pytest.mark.parametrize("columns", [80, 120])
def test_executions_and_tools_show_the_beginning_of_a_long_text(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    everything = terminal.script.on_http
    long = "Please pay the invoices of March. " * 1000
    runs = [{**EXECUTION, "execution_id": f"{n}" * 36, "request": long} for n in range(4)]
    items = {"/v1/executions": runs, "/v1/tools": [{**TOOL, "description": long}]}

    async def answer(asked: Asked) -> Response:
        found = items.get(asked.path)
        if found is None:
            return await everything(asked)
        return JSONResponse({"items": found, "next_cursor": None, "cursor": "k0"})

    terminal.script.on_http = answer
    on_a_screen(monkeypatch, columns)
    assert terminal("executions") == 0
    lines = terminal.out.splitlines()
    assert len(lines) <= 24, "four runs fit on a screen"
    assert sum("…" in line for line in lines) == 4
    assert terminal("tools") == 0
    assert len(terminal.out.splitlines()) <= 24
    assert "…" in terminal.out


LONG_TEXT = "Please pay the invoices of March. " * 20


def test_json_on_a_narrow_terminal_is_json_when_it_is_copied(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = terminal.script.on_http
    call = {**RAN, "arguments": {"note": LONG_TEXT}}

    async def answer(asked: Asked) -> Response:
        if asked.path.endswith("/tool-calls"):
            return JSONResponse({"items": [call], "next_cursor": None})
        if asked.path.endswith("/c0ffee"):
            return JSONResponse(call)
        return await everything(asked)

    terminal.script.on_http = answer
    on_a_screen(monkeypatch, 80)
    assert terminal("show", "invoice-march/c0ffee") == 0
    shown = plain(terminal.out)
    assert LONG_TEXT in json.loads(shown[shown.index("{") :]).values()


def test_call_on_a_narrow_terminal_is_shown_with_its_whole_ids_and_digest(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {**HOLD, "call_id": "c0ffee-" + "7" * 57, "digest": "f" * 64}
    everything = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        if asked.path.endswith("/tool-calls"):
            return JSONResponse({"items": [call], "next_cursor": None})
        return JSONResponse(call) if "/tool-calls/" in asked.path else await everything(asked)

    terminal.script.on_http = answer
    on_a_screen(monkeypatch, 40)
    assert terminal("show", "invoice-march/c0ffee") == 0
    facts = plain(terminal.out).partition("arguments")[0]
    assert "…" not in facts
    assert facts.count("7") >= 57
    assert facts.count("f") >= 64


def test_hold_on_a_narrow_terminal_is_shown_with_whom_it_was_handed_to(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        if asked.path == f"/v1/holds/{HOLD['hold_id']}":
            return JSONResponse({**HOLD, "assignee": "q" * 60})
        return await everything(asked)

    terminal.script.on_http = answer
    on_a_screen(monkeypatch, 40)
    assert terminal("show", str(HOLD["hold_id"])) == 0
    assert plain(terminal.out).count("q") == 60


def test_difference_of_an_edit_is_not_broken_within_a_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_screen(monkeypatch, 80)
    edited = json.dumps({"recipient": LONG_TEXT})
    assert terminal("edit", str(HOLD["hold_id"]), "--arguments", edited, "--yes") == 0
    assert f'+  "recipient": "{LONG_TEXT}"' in plain(terminal.out).splitlines()


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-11-24 23:59:59", "23:59:59"),
        ("2026-11-24 00:00:00", "00:00:00"),
        ("2026-11-25 03:41:17", "2026-11-25 03:41:17"),
        ("2026-11-23 03:41:17", "2026-11-23 03:41:17"),
        ("2027-11-24 03:41:17", "2027-11-24 03:41:17"),
    ],
)
def test_time_of_another_day_has_its_date(at: str, shown: str) -> None:
    local, now = (datetime.fromisoformat(text).astimezone(UTC) for text in (at, "2026-11-24 12:00:00"))
    assert clock(local, now) == shown


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (timedelta(days=7, hours=5, minutes=1), "(7 d 5 h)"),
        (timedelta(days=1, minutes=1), "(1 d 0 h)"),
        (timedelta(hours=2, minutes=3, seconds=30), "(2 h 3 min)"),
        (timedelta(minutes=4, seconds=30.9), "(4 min 30 s)"),
        (timedelta(0), "(over)"),
    ],
)
def test_deadline_says_the_time_left_in_its_two_largest_units(left: timedelta, shown: str) -> None:
    assert until(Hold("h", status="open", deadline_at=datetime.now(UTC) + left)).endswith(shown)


def test_hold_that_waits_until_tomorrow_says_the_date() -> None:
    deadline = datetime.now(UTC) + timedelta(days=1, minutes=1)
    hold = Hold("h", status="open", deadline_at=deadline)
    assert until(hold).startswith(deadline.astimezone().strftime("%Y-%m-%d %H:%M:%S ("))


def test_refusal_marks_its_warnings() -> None:
    errors = [
        {"path": "rules[0]", "message": "wrong", "severity": "error"},
        {"path": "rules[1]", "message": "doubtful", "severity": "warning"},
    ]
    said = explained(Refused("invalid", 422, "rules[0]: wrong", {"errors": errors}))
    assert said.splitlines() == ["invalid: rules[0]: wrong", "  rules[1]: doubtful (warning)"]


def test_digest_that_is_too_short_is_told_so(terminal: Terminal) -> None:
    for option in ("--digest", "--seen"):
        assert terminal("approve", str(HOLD["hold_id"]), "--yes", option, "d8bb") == 2
        assert "give 8 characters or more" in terminal.err
    assert terminal.sent() == []


def test_refusal_with_one_reason_says_it_once() -> None:
    detail = "seconds: a number of at most 3600 is needed here"
    errors = [{"path": "seconds", "message": "a number of at most 3600 is needed here"}]
    assert explained(Refused("invalid", 422, detail, {"errors": errors})) == f"invalid: {detail}"


def test_interrupt_while_the_command_is_read_in_is_quiet() -> None:
    code = """
import sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "placet.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
from placet.cli import main
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


def test_name_that_two_holds_have_is_told_with_the_ids_of_the_holds() -> None:
    holds = [("hold-1", "dup1"), ("hold-2", "dup1"), ("hold-3", "dup12")]
    with pytest.raises(Ambiguous, match=re.escape("(hold-1, hold-2): give one of these")):
        by_prefix(holds, "dup1", lambda one: one, "hold")


@pytest.mark.parametrize(
    ("leaves", "heads", "said"),
    [(1, 1, "1 leaf and 1 head are in"), (1200, 0, "1,200 leaves and 0 heads are in")],
)
def test_audit_fetch_counts_in_words_that_are_english(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, leaves: int, heads: int, said: str
) -> None:
    monkeypatch.setattr("placet.cli.proof.Fetch.run", lambda fetch: {"leaves": leaves, "heads": heads})
    assert terminal("audit", "fetch", "--out", str(tmp_path)) == 0
    assert f"{said} {tmp_path}" in terminal.out
