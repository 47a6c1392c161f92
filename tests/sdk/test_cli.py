import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from starlette.responses import JSONResponse, Response

from gateway.resources import ExecutionState
from gateway.rest.standing_rules import STATUS
from placet.cli import choices, run
from placet.cli.inbox import shortener
from placet.cli.plugins import OF_THE_SERVER, OWN, find
from schemas.commands import RequestKind, Scope
from tests.sdk.scripted import Asked, Peer
from tests.sdk.terminal import GROUP, HOLD, OTHER, RAN, Terminal, gateway


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


def test_tools_say_whose_each_is(terminal: Terminal) -> None:
    everything = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        if asked.path != "/v1/tools":
            return await everything(asked)
        tools = [{"name": "pay", "version": 1, "project": project} for project in ("*", "payments")]
        return JSONResponse({"items": tools, "next_cursor": None})

    terminal.script.on_http = answer
    assert terminal("tools") == 0
    assert [line.split()[:3] for line in terminal.out.splitlines()] == [
        ["tool", "version", "project"],
        ["pay", "1", "*"],
        ["pay", "1", "payments"],
    ]


def test_tools_say_which_annotations_hold_and_which_do_not(terminal: Terminal) -> None:
    assert terminal("tools") == 0
    assert "title: Send, not readOnlyHint, destructiveHint " in terminal.out


@pytest.mark.parametrize("text", ['{"name": "a", "name": "b"}', '{"name": "a", "lease_seconds": NaN}', "[]"])
def test_tool_put_of_what_is_no_plain_object_sends_nothing(
    text: str, terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "tool.json").write_text(text)
    assert terminal("tool", "put", str(tmp_path / "tool.json")) == 2
    assert terminal.sent("PUT") == []


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


@pytest.mark.parametrize(("text", "partition"), [("4=0", "4"), ("0=1,9=0", "9")])
def test_events_from_a_partition_that_there_is_not_is_wrong_usage(
    terminal: Terminal, text: str, partition: str
) -> None:
    assert terminal("events", "--from", text) == 2
    assert f"there is no partition {partition}: the log has 4 partitions, 0 to 3" in terminal.err
    assert terminal.out == ""


def test_events_from_offsets_asks_no_count_that_the_token_may_not_see(terminal: Terminal) -> None:
    async def hides(asked: Asked) -> Response:
        if asked.path == "/v1/components":
            return JSONResponse({"code": "not_authorised", "detail": "a role is missing"}, 403)
        return await gateway(asked)

    terminal.script.on_http = hides
    assert terminal("events", "--execution", "invoice-march", "--from", "3=8", "--json") == 0
    assert [json.loads(line)["event_id"] for line in terminal.out.splitlines()] == ["2"]


def test_events_from_one_partition_twice_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("events", "--from", "0=1,3=8,0=7") == 2
    assert "partition 0 is named twice" in terminal.err
    assert terminal.script.asked == []


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
    monkeypatch.setattr("placet.cli.session.connect.__defaults__", (0.2, 20.0))
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


@pytest.mark.parametrize(
    ("released_by", "rule_id", "decided_by", "said"),
    [
        ("decision", None, "mia", "mia"),
        ("rule", "rule_7", None, "rule rule_7"),
        ("rule", "rule_7", "mia", "rule rule_7"),
        ("policy", None, None, "policy"),
        ("policy", None, "mia", "policy"),
    ],
)
def test_audit_impact_says_what_let_a_call_go(
    released_by: str, rule_id: str | None, decided_by: str | None, said: str, terminal: Terminal
) -> None:
    grant = {"digest": "d", "grant_id": "g", "released_by": released_by, "rule_id": rule_id}
    decision = {"decision": "approve", "decision_id": "d1", "by": decided_by} if decided_by else None
    ran = {**RAN, "grant": grant, "decision": decision}

    async def answer(asked: Asked) -> Response:
        return JSONResponse({"items": [ran], "next_cursor": None})

    terminal.script.on_http = answer
    assert terminal("audit", "impact", "--rule", "r") == 0
    assert terminal.out.splitlines()[-1].endswith(f"succeeded  {said}")


def test_principals_are_listed_with_what_would_hide_in_a_name_escaped(terminal: Terminal) -> None:
    assert terminal("principals") == 0
    assert "treasurer" in terminal.out
    assert "\u202e" not in terminal.out


def test_principals_publish_sends_accounts_and_roles(terminal: Terminal) -> None:
    assert terminal("principals", "publish", "mia-m", "--subject", "mia", "--role", "treasurer") == 0
    (sent,) = terminal.sent("PUT")
    assert sent.json() == {"subjects": ["mia"], "roles": ["treasurer"], "agents": [], "disabled": False}


def test_help_imports_neither_a_client_nor_the_server() -> None:
    script = (
        "import sys; from placet.cli import run; code = run(['--help']); print(code, *sorted(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    code, *modules = said.stdout.splitlines()[-1].split()
    heavy = {"httpx", "websockets", "rich", "pydantic", "fastapi", "aiokafka", "ops", "schemas"}
    assert code == "0"
    assert heavy.isdisjoint(modules), "these make a command wait before it has begun"
    assert {"placet.sync", "placet.client", "placet.cli.inbox", "placet.cli.proof"}.isdisjoint(modules)


def test_inbox_imports_no_websocket_and_no_command_line_of_others(terminal: Terminal) -> None:
    script = (
        "import sys; from placet.cli import run; code = run(sys.argv[1:]); print(code, *sorted(sys.modules))"
    )
    arguments = ["--url", terminal.script.url, "--token", "t", "inbox", "--json"]
    said = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    code, *modules = said.stdout.splitlines()[-1].split()
    assert code == "0"
    assert {"websockets", "rich.console", "pygments", "click", "ops"}.isdisjoint(modules)


@pytest.mark.parametrize("name", sorted(OWN))
def test_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    assert find("", name).get_short_help_str(200) == OWN[name][1]


@pytest.mark.parametrize("name", sorted(OF_THE_SERVER))
def test_list_of_commands_says_what_each_of_the_server_says_of_itself(name: str) -> None:
    group, _, last = name.rpartition(" ")
    assert find(group, last).get_short_help_str(200).rstrip(".") == OF_THE_SERVER[name].rstrip(".")


def test_words_of_options_are_those_of_the_interface() -> None:
    assert set(choices.KINDS) == set(get_args(RequestKind))
    assert set(choices.STATES) == set(get_args(ExecutionState))
    assert get_args(Scope) == choices.SCOPES
    assert STATUS.choices == choices.RULE_STATUSES


@pytest.mark.parametrize(
    "arguments",
    [
        ("inbox", "--kind", "x"),
        ("executions", "--state", "x"),
        ("approve", "c0ffee", "--scope", "x"),
        ("rules", "--status", "x"),
    ],
)
def test_unknown_word_for_an_option_is_wrong_usage(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    assert terminal(*arguments) == 2
    assert "'x' is not one of" in terminal.err
    assert terminal.script.asked == []


def test_type_of_events_that_the_gateway_does_not_know_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("events", "--type", "x") == 2
    assert "'x' is not one of" in terminal.err
    assert "DecisionRecorded" in terminal.err
    assert "DecideHold" not in terminal.err
    assert [asked.path for asked in terminal.script.asked] == ["/subjects"]


def test_type_of_events_is_taken_as_it_is_where_only_v1_is_let_through(terminal: Terminal) -> None:
    everything = terminal.script.on_http

    async def answer(asked: Asked) -> Response:
        return Response(status_code=404) if asked.path == "/subjects" else await everything(asked)

    terminal.script.on_http = answer
    assert terminal("events", "--type", "ToolCallProposed", "--json") == 0
    assert json.loads(terminal.out)["event_id"] == "2"


def test_policy_file_that_is_not_utf_8_is_wrong_usage(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_bytes(b"policy: production\n# \xff\n")
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 2
    assert "is not UTF-8 (byte 21)" in terminal.err


def test_mine_asks_for_what_may_be_decided(terminal: Terminal) -> None:
    assert terminal("inbox", "--mine") == 0
    assert terminal.script.asked[0].params["decidable"] == "me"
