"""`placet approve --scope rule` and `placet rules`: what is sent, what is shown, what is wrong usage."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response
from typer import BadParameter

from placet.cli.remembering import options_of, parsed_tests, remember_of, seconds_of
from tests.sdk.scripted import Asked, Scripted
from tests.sdk.terminal import HOLD, Terminal, gateway, on_a_screen, plain
from tests.sdk.threaded import serving_thread

RULE: dict[str, Any] = {
    "rule_id": "r-1",
    "status": "active",
    "agent": "billing-bot",
    "tool": "send\u202emoney",
    "arguments": {"amount": {"at_most": 100}},
    "expires_at": "2026-11-20T12:00:00Z",
    "uses": 5,
    "used": 2,
    "made_by": "rita",
}


async def answers(asked: Asked) -> Response:
    if asked.path == "/v1/standing-rules":
        return JSONResponse({"items": [RULE], "next_cursor": None})
    if asked.path.startswith("/v1/standing-rules/"):
        return JSONResponse({**RULE, "status": "revoked"})
    return await gateway(asked)


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    with serving_thread(Scripted(on_http=answers)) as script:
        yield Terminal(script, capsys)


def approve(terminal: Terminal, *options: str) -> int:
    return terminal("approve", HOLD["hold_id"], "--yes", *options)


def test_approve_for_a_rule_sends_tests_uses_and_duration(terminal: Terminal) -> None:
    options = (
        "--scope",
        "rule",
        "--uses",
        "5",
        "--for",
        "24h",
        "--where",
        "amount<=100",
        "--where",
        "note=*",
    )
    assert approve(terminal, *options) == 0
    body = terminal.sent()[-1].json()
    assert body["scope"] == "rule"
    assert body["remember"] == {
        "uses": 5,
        "expires_seconds": 86_400,
        "arguments": {"amount": {"at_most": 100}, "note": {"any": True}},
    }


def test_approve_for_a_rule_without_a_limit_says_null(terminal: Terminal) -> None:
    assert approve(terminal, "--scope", "rule", "--uses", "unlimited") == 0
    assert terminal.sent()[-1].json()["remember"] == {"uses": None}


def test_approve_once_sends_nothing_to_remember(terminal: Terminal) -> None:
    assert approve(terminal) == 0
    assert "remember" not in terminal.sent()[-1].json()


@pytest.mark.parametrize(
    "options",
    [
        ("--uses", "5"),
        ("--scope", "rule", "--uses", "0"),
        ("--scope", "rule", "--for", "soon"),
        ("--scope", "rule", "--for", "0h"),
        ("--scope", "rule", "--where", "amount"),
        ("--scope", "rule", "--where", "amount<=much"),
        ("--scope", "rule", "--where", "to in GB29"),
    ],
)
def test_approve_with_what_cannot_be_remembered_is_wrong_usage_and_decides_nothing(
    terminal: Terminal, options: tuple[str, ...]
) -> None:
    assert approve(terminal, *options) == 2
    assert terminal.sent() == []


@pytest.mark.parametrize(
    ("texts", "tests"),
    [
        (["amount<=100", "amount >= 1"], {"amount": {"at_most": 100, "at_least": 1}}),
        (["to=GB29"], {"to": {"equals": "GB29"}}),
        (["to=7"], {"to": {"equals": 7}}),
        (["to=null"], {"to": {"equals": None}}),
        (['to in ["a","b"]'], {"to": {"one_of": ["a", "b"]}}),
        (["path^=/tmp/"], {"path": {"prefix": "/tmp/"}}),
        (["path^==x"], {"path": {"prefix": "=x"}}),
        (['to=">10"'], {"to": {"equals": ">10"}}),
        (["note=a<=b in c"], {"note": {"equals": "a<=b in c"}}),
    ],
)
def test_where_is_read_as_the_interface_has_it(texts: list[str], tests: dict[str, Any]) -> None:
    assert parsed_tests(texts) == tests


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("seats=>10", "=>"),
        ("seats =< 10", "=<"),
        ("seats==10", "=="),
        ("seats!=10", "!="),
        ("seats<10", "<"),
        ("seats>10", ">"),
        ("seats<>10", "<>"),
        ("to=~GB.*", "=~"),
        ("to~=GB", "~="),
        ("seats>==10", ">=="),
        ('to not in ["a"]', "not in"),
    ],
)
def test_where_with_a_sign_that_does_not_exist_is_refused_with_those_that_do(text: str, sign: str) -> None:
    with pytest.raises(BadParameter, match=re.escape(f"there is no test {sign}; ")) as refused:
        parsed_tests([text])
    assert all(known in str(refused.value) for known in ("<=", ">=", "^=", "in (", "=*"))


def test_where_that_lets_anything_through_takes_no_value() -> None:
    with pytest.raises(BadParameter, match="nothing comes after"):
        parsed_tests(["note=*abc"])


@pytest.mark.parametrize(
    "remember",
    [
        {},
        {"uses": 5, "expires_seconds": 86_400},
        {"uses": None, "arguments": {"amount": {"at_least": 1, "at_most": 100}, "note": {"any": True}}},
        {"arguments": {"to": {"equals": "GB 29's"}, "path": {"prefix": "/tmp/a b"}, "n": {"equals": None}}},
        {"arguments": {"to": {"one_of": ["a", 7]}}},
    ],
)
def test_options_that_show_what_was_asked_ask_for_the_same(remember: dict[str, Any]) -> None:
    words = shlex.split(options_of("rule", remember))
    given: dict[str, list[str]] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(name, []).append(value)
    (scope,), uses, lasts = given.pop("--scope"), given.pop("--uses", [""]), given.pop("--for", [""])
    assert (remember_of(scope, uses[0], lasts[0], given.pop("--where", [])) or {}) == remember
    assert given == {}


def test_show_tells_what_an_earlier_vote_asks_to_be_remembered(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"scope": "rule", "remember": {"uses": 5, "arguments": {"amount": {"at_most": 90}}}}
    monkeypatch.setitem(HOLD, "quorum", 2)
    monkeypatch.setitem(HOLD, "votes", [{"by": "tom", **asked}])
    assert terminal("show", HOLD["hold_id"]) == 0
    assert "tom: --scope rule --uses 5 --where 'amount<=90'" in terminal.out


def test_durations_are_seconds() -> None:
    assert [seconds_of(text) for text in ("90s", "30m", "24h", "7d")] == [90, 1_800, 86_400, 604_800]


def test_claim_that_is_too_long_is_told_with_the_option_and_the_limit(terminal: Terminal) -> None:
    assert terminal("claim", HOLD["hold_id"], "--for", "3h") == 2
    assert "--for" in terminal.err
    assert "3h is too long; at most 1h" in terminal.err
    assert seconds_of("60m", at_most="1h") == 3_600


def test_rules_are_listed_with_what_would_hide_escaped(terminal: Terminal) -> None:
    assert terminal("rules") == 0
    assert "2/5" in terminal.out
    assert "\u202e" not in terminal.out
    assert terminal("rules", "--json") == 0
    assert json.loads(terminal.out) == [RULE]


@pytest.mark.parametrize("columns", [80, 120])
def test_rules_on_a_screen_break_no_column(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    rule_id = "0d6f3a52-7c5e-5b1a-9a44-70d1c2b0e6aa"
    tests = {"recipient": {"prefix": "GB29"}, "amount": {"at_most": 100}, "purpose": {"equals": "rent"}}

    async def one(asked: Asked) -> Response:
        return JSONResponse(
            {"items": [{**RULE, "rule_id": rule_id, "arguments": tests}], "next_cursor": None}
        )

    terminal.script.on_http = one
    on_a_screen(monkeypatch, columns)
    assert terminal("rules") == 0
    shown = plain(terminal.out)
    for whole in (rule_id, "billing-bot", "2/5", "rita"):
        assert whole in shown
    assert re.sub(r"\s+", " ", json.dumps(tests)) in re.sub(r"\s+", " ", shown)


def test_rules_show_their_end_in_the_terminals_zone(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert terminal("rules") == 0
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "2026-11-20 21:00:00" in terminal.out


@pytest.mark.parametrize("change", ["activate", "suspend", "revoke"])
@pytest.mark.parametrize("prefix", ["r-1", "r"])
def test_rules_are_changed_by_their_id_or_its_beginning_with_a_reason(
    terminal: Terminal, change: str, prefix: str
) -> None:
    assert terminal("rules", change, prefix, "--reason", "why") == 0
    (sent,) = terminal.sent()
    assert (sent.path, sent.json()) == (f"/v1/standing-rules/r-1/{change}", {"reason": "why"})
    assert "revoked" in terminal.out


@pytest.mark.parametrize("change", ["activate", "suspend", "revoke"])
def test_rules_are_changed_by_whom_the_policy_names_and_who_may_not_list_them(
    capsys: pytest.CaptureFixture[str], change: str
) -> None:
    rule_id = "0d6f3a52-7c5e-5b1a-9a44-70d1c2b0e6aa"

    async def by_an_own_role(asked: Asked) -> Response:
        if asked.method == "GET":
            detail = "this needs one of the roles reviewer, operator, analyst"
            return JSONResponse({"code": "not_authorised", "detail": detail}, 403)
        return JSONResponse({**RULE, "rule_id": rule_id, "status": "active"})

    with serving_thread(Scripted(on_http=by_an_own_role)) as script:
        terminal = Terminal(script, capsys)
        assert terminal("rules", change, rule_id) == 0, terminal.err
        assert [(asked.method, asked.path) for asked in script.asked] == [
            ("POST", f"/v1/standing-rules/{rule_id}/{change}")
        ]
        assert terminal("rules", change, rule_id[:8]) == 1
        assert "give the rule's whole id" in terminal.err
        assert len(terminal.sent()) == 1
