import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from placet.cli import run
from placet.cli.decide import answer_value
from placet.cli.inbox import shortener
from placet.models import Hold
from schemas import canonical
from tests.sdk.scripted import QUICK, Asked, Peer, Scripted
from tests.sdk.threaded import serving_thread

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
PUBLISHED = {"version": 3, "cursor": "k", "warnings": ["rule x matches no known tool"]}


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

    def sent(self, method: str = "POST") -> list[Asked]:
        return [asked for asked in self.script.asked if asked.method == method]


async def gateway(asked: Asked) -> Response:
    answer: Callable[[Asked], Response] | None = {
        "/v1/holds": lambda asked: JSONResponse({"items": [HOLD, OTHER], "next_cursor": None}),
        f"/v1/holds/{HOLD['hold_id']}": lambda asked: JSONResponse(HOLD),
        f"/v1/holds/{HOLD['hold_id']}/view": lambda asked: JSONResponse(VIEW),
        "/v1/holds/groups": lambda asked: JSONResponse({"items": [GROUP], "next_cursor": None}),
        f"/v1/holds/{HOLD['hold_id']}/decision": lambda asked: JSONResponse(
            {"status": "resolved", "decision_id": "d1"}
        ),
        "/v1/policies/production": lambda asked: JSONResponse(PUBLISHED),
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
        "/v1/components": lambda asked: JSONResponse({"items": [{"name": "decider", "state": "ready"}]}),
    }.get(asked.path)
    if answer is None:
        return JSONResponse({"code": "not_found", "detail": f"no {asked.path}"}, 404)
    return answer(asked)


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


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    with serving_thread(Scripted(on_http=gateway)) as script:
        yield Terminal(script, capsys)


def test_inbox_lists_what_waits_with_ids_as_long_as_needed(terminal: Terminal) -> None:
    assert terminal("inbox") == 0
    assert "5b0a1f6e-2 " in terminal.out
    assert "send_money" in terminal.out
    assert "high 0.90" in terminal.out


def test_inbox_shows_what_an_agent_sent_escaped(terminal: Terminal) -> None:
    assert terminal("inbox") == 0
    assert "\x1b" not in terminal.out
    assert "\\u{1b}[31m" in terminal.out


def test_inbox_as_json_is_what_the_gateway_said(terminal: Terminal) -> None:
    assert terminal("inbox", "--json") == 0
    assert json.loads(terminal.out) == [HOLD, OTHER]
    assert terminal.out.isascii()


def test_inbox_grouped_shows_like_holds_as_one_line(terminal: Terminal) -> None:
    assert terminal("inbox", "--grouped") == 0
    assert [line.split()[:4] for line in terminal.out.splitlines()[1:]] == [
        ["37", "×", "billing-bot", "send_money"]
    ]
    assert terminal("inbox", "--grouped", "--json") == 0
    assert json.loads(terminal.out) == [GROUP]
    assert terminal("inbox", "--grouped", "--mine") == 2


def test_show_by_the_beginning_of_a_call_id_prints_the_servers_text_as_it_is(terminal: Terminal) -> None:
    assert terminal("show", "c0ff") == 0
    assert TEXT in terminal.out
    assert VIEW["view_digest"] in terminal.out


def test_show_of_a_text_that_its_digest_does_not_name_shows_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VIEW, "text", TEXT.replace("GB", "DE"))
    assert terminal("show", "c0ff") == 1
    assert "not the text that its digest names" in terminal.err
    assert terminal.out == ""


def test_show_of_a_view_that_steers_the_terminal_is_inert(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = TEXT + "\x1b[2Jgone\n"
    monkeypatch.setitem(VIEW, "text", forged)
    monkeypatch.setitem(VIEW, "view_digest", sha256(forged.encode()).hexdigest())
    assert terminal("show", "c0ff") == 0
    assert "\x1b" not in terminal.out
    assert "\\u{1b}[2Jgone" in terminal.out


def test_show_of_what_several_begin_with_asks_for_more(terminal: Terminal) -> None:
    assert terminal("show", "5b0a") == 1
    assert "fits 2" in terminal.err


def test_show_of_what_is_not_there_is_not_found(terminal: Terminal) -> None:
    assert terminal("show", "zzz") == 1
    assert "not_found" in terminal.err


def test_approve_shows_and_sends_the_digest(terminal: Terminal) -> None:
    assert terminal("approve", "c0ffee", "--yes", "--digest", DIGEST[:12]) == 0
    assert DIGEST in terminal.out
    body = terminal.sent()[0].json()
    assert (body["decision"], body["digest"]) == ("approve", DIGEST)
    assert body["view_digest"] == VIEW["view_digest"]
    assert TEXT in terminal.out


def test_approve_as_json_prints_the_view_beside_it(terminal: Terminal) -> None:
    assert terminal("approve", "c0ffee", "--yes", "--json") == 0
    assert TEXT in terminal.err
    assert json.loads(terminal.out)["decision_id"] == "d1"


def test_approve_of_a_view_that_was_seen_elsewhere_does_not_print_it_again(terminal: Terminal) -> None:
    seen = str(VIEW["view_digest"])
    assert terminal("approve", "c0ffee", "--yes", "--seen", seen[:12]) == 0
    assert "arguments:" not in terminal.out
    assert terminal.sent()[0].json()["view_digest"] == seen


@pytest.mark.parametrize("seen", ["0" * 64, str(VIEW["view_digest"])[:4]])
def test_approve_of_another_view_than_was_seen_is_refused_here(terminal: Terminal, seen: str) -> None:
    assert terminal("approve", "c0ffee", "--yes", "--seen", seen) == 1
    assert "look again" in terminal.err
    assert terminal.sent() == []


def test_approve_of_a_view_about_another_digest_is_refused_here(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = TEXT.replace(DIGEST, "0" * 64)
    monkeypatch.setitem(VIEW, "text", forged)
    monkeypatch.setitem(VIEW, "view_digest", sha256(forged.encode()).hexdigest())
    assert terminal("approve", "c0ffee", "--yes") == 1
    assert "other arguments than the hold" in terminal.err
    assert terminal.sent() == []


def test_approve_where_nobody_can_be_asked_is_wrong_usage(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert terminal("approve", "c0ffee") == 2
    assert "--yes" in terminal.err
    assert terminal.sent() == []


@pytest.mark.parametrize("digest", ["0" * 64, DIGEST[:4], DIGEST + "0"])
def test_approve_of_another_digest_is_refused_here(terminal: Terminal, digest: str) -> None:
    assert terminal("approve", "c0ffee", "--yes", "--digest", digest) == 1
    assert "digest_mismatch" in terminal.err
    assert terminal.sent() == []


def test_approve_of_arguments_that_are_not_the_digests_is_refused_here(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "arguments", {"recipient": "EVIL"})
    assert terminal("approve", "c0ffee", "--yes") == 1
    assert "nothing was decided" in terminal.err
    assert terminal.sent() == []


def test_edit_sends_the_arguments_and_shows_what_changes(terminal: Terminal) -> None:
    assert terminal("edit", "c0ffee", "--arguments", '{"recipient": "GB30", "amount": 98.7}') == 0
    assert '+  "recipient": "GB30"' in terminal.out
    assert terminal.out.index(TEXT) < terminal.out.index('+  "recipient": "GB30"')
    assert terminal.sent()[0].json()["view_digest"] == VIEW["view_digest"]
    body = terminal.sent()[0].json()
    assert body["edited_arguments"] == {"recipient": "GB30", "amount": 98.7}
    assert body["digest"] == DIGEST


def test_edit_reads_a_file(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text('{"a": 1}')
    assert terminal("edit", "c0ffee", "--arguments", f"@{tmp_path / 'new.json'}", "--json") == 0
    assert terminal.sent()[0].json()["edited_arguments"] == {"a": 1}
    assert json.loads(terminal.out)["decision_id"] == "d1"


@pytest.mark.parametrize("text", ["[1]", "{", '{"a":1,"a":2}', "@/no/such/file"])
def test_edit_with_no_json_object_is_wrong_usage(terminal: Terminal, text: str) -> None:
    assert terminal("edit", "c0ffee", "--arguments", text) == 2
    assert terminal.sent() == []


def test_reject_tells_the_agent_why(terminal: Terminal) -> None:
    assert terminal("reject", "c0ffee", "--feedback", "not on Fridays") == 0
    body = terminal.sent()[0].json()
    assert (body["decision"], body["feedback"]) == ("reject", "not on Fridays")


def test_reject_without_feedback_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("reject", "c0ffee") == 2


@pytest.mark.parametrize(
    ("hold", "text", "value"),
    [
        (Hold("h", options=("yes", "no")), "yes", "yes"),
        (Hold("h", options=({"label": "Later", "value": 3},)), "Later", 3),
        (Hold("h"), "42", 42),
        (Hold("h"), "plain words", "plain words"),
        (Hold("h", input_schema={"type": "string"}), "42", "42"),
        (Hold("h"), '{"a": [1]}', {"a": [1]}),
    ],
)
def test_answer_value_is_what_was_meant(hold: Hold, text: str, value: Any) -> None:
    assert answer_value(hold, text) == value


def test_answer_sends_the_value(terminal: Terminal) -> None:
    assert terminal("answer", "c0ffee", "42") == 0
    assert terminal.sent()[0].json()["value"] == 42


def test_policy_publish_sends_the_document_as_it_is(terminal: Terminal, tmp_path: Path) -> None:
    text = "# ours\npolicy: production   # the name\nrules: []\n"
    (tmp_path / "policy.yaml").write_text(text)
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 0
    assert "version 3" in terminal.out
    assert "matches no known tool" in terminal.out
    assert terminal.sent("PUT")[0].body.decode() == text


def test_policy_publish_of_a_document_without_a_name_is_wrong_usage(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text("rules: []\n")
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 2


def test_state_at_a_moment_asks_for_it(terminal: Terminal) -> None:
    assert terminal("state", "invoice", "--at", "12", "--json") == 0
    assert json.loads(terminal.out)["at"] == "12"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["1", "2"]),
        (["--execution", "invoice-march"], ["1", "2"]),
        (["--type", "ToolCallProposed"], ["2"]),
        (["--from", "2026-11-20T10:30:00Z"], ["2"]),
        (["--from", "3=8"], ["2"]),
        (["--from", "2026-11-21T00:00:00Z"], []),
    ],
)
def test_events_from_a_moment_and_of_a_type(
    terminal: Terminal, arguments: list[str], expected: list[str]
) -> None:
    assert terminal("events", "--json", *arguments) == 0
    assert [json.loads(line)["event_id"] for line in terminal.out.splitlines()] == expected


def test_events_followed_from_a_time_go_on_where_the_past_was_read(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if peer.number > 0:
            await peer.end(4401, "the token has expired")
        elif message["type"] == "subscribe":
            for number in ("2", "3"):
                row = {"event_id": number, "event_type": "ToolCallReleased", "execution_id": "invoice-march"}
                await peer.say(type="event", cursor=f"k{number}", **row)
            await peer.end()

    terminal.script.on_frame = tell
    assert terminal("events", "--follow", "--from", "2026-11-20T10:30:00Z", "--json") == 1
    assert [json.loads(line)["event_id"] for line in terminal.out.splitlines()] == ["2", "3"]
    assert terminal.script.frames("subscribe")[0]["cursor"] == "k0"


def test_events_from_a_time_without_offset_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("events", "--from", "2026-11-20T10:30:00") == 2


@pytest.mark.parametrize(
    ("command", "shown"),
    [("executions", "invoice-march"), ("audit", "approve"), ("components", "decider")],
)
def test_lists_print_a_table_or_json(terminal: Terminal, command: str, shown: str) -> None:
    assert terminal(command) == 0
    assert shown in terminal.out
    assert terminal(command, "--json") == 0
    assert isinstance(json.loads(terminal.out), list)


def test_any_command_where_nobody_listens_exits_3(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placet.cli.session.PATIENCE", replace(QUICK, request_s=0.2))
    assert terminal("inbox", url="http://127.0.0.1:9") == 3
    assert "not reachable" in terminal.err


def test_any_command_without_a_gateway_exits_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLACET_URL", raising=False)
    assert run(["inbox"]) == 2
    assert "PLACET_URL" in capsys.readouterr().err


def test_shortener_tells_ids_apart() -> None:
    ids = ["aaaaaaaa1111", "aaaaaaaa2222", "bbbb"]
    assert [shortener(ids)(one) for one in ids] == ["aaaaaaaa1", "aaaaaaaa2", "bbbb"]


def test_revoke_takes_a_release_back_and_says_so(terminal: Terminal) -> None:
    asked: list[Asked] = []

    async def answer(request: Asked) -> Response:
        asked.append(request)
        return JSONResponse({**HOLD, "status": "revoked"})

    terminal.script.on_http = answer
    assert terminal("revoke", "invoice-march", "c1", "--reason", "wrong payee") == 0
    assert asked[-1].path == "/v1/executions/invoice-march/tool-calls/c1/revoke"
    assert asked[-1].json() == {"reason": "wrong payee"}
    assert "revoked: send_money invoice-march/c1" in terminal.out


def test_revoke_of_what_is_not_released_is_refused(terminal: Terminal) -> None:
    async def answer(request: Asked) -> Response:
        return JSONResponse({"code": "not_released", "detail": "it was consumed"}, 409)

    terminal.script.on_http = answer
    assert terminal("revoke", "e1", "c1") == 1
    assert "it was consumed" in terminal.err


def test_audit_impact_without_or_with_two_subjects_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("audit", "impact") == 2
    assert terminal("audit", "impact", "--grant", "g", "--rule", "r") == 2
    assert terminal.script.asked == []


def test_audit_impact_lists_what_ran_because_of_a_person(terminal: Terminal) -> None:
    assert terminal("audit", "impact", "--reviewer", "mia-m") == 0
    assert "c0ffee" in terminal.out
    assert "policy" in terminal.out
    assert terminal.script.asked[0].params["reviewer"] == "mia-m"


def test_principals_are_listed_with_what_would_hide_in_a_name_escaped(terminal: Terminal) -> None:
    assert terminal("principals") == 0
    assert "treasurer" in terminal.out
    assert "\u202e" not in terminal.out


def test_principals_publish_sends_accounts_and_roles(terminal: Terminal) -> None:
    assert terminal("principals", "publish", "mia-m", "--subject", "mia", "--role", "treasurer") == 0
    (sent,) = terminal.sent("PUT")
    assert sent.json() == {"subjects": ["mia"], "roles": ["treasurer"], "agents": [], "disabled": False}
