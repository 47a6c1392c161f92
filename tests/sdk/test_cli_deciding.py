import io
import json
import re
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response

from placet.canonical import call_digest
from placet.cli.viewing import arranged
from tests.sdk.scripted import Asked, Scripted
from tests.sdk.terminal import DIGEST, HOLD, TEXT, VIEW, Terminal, gateway, on_a_screen, plain
from tests.sdk.threaded import serving_thread

GOLDEN = Path(__file__).parents[1] / "golden" / "views"


def test_show_by_the_beginning_of_a_call_id_prints_the_servers_text_as_it_is(terminal: Terminal) -> None:
    assert terminal("show", "c0ff") == 0
    assert sorted(TEXT.splitlines()) == sorted(
        line for line in terminal.out.splitlines() if line in TEXT.splitlines()
    )
    assert VIEW["view_digest"] in terminal.out


def test_show_of_a_text_that_its_digest_does_not_name_shows_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VIEW, "text", TEXT.replace("GB", "DE"))
    assert terminal("show", "c0ff") == 1
    assert "the view does not match its digest" in terminal.err
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


def test_row_into_which_a_terminal_breaks_a_line_looks_like_no_line_of_its_own(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An argument that fills a row of this terminal's 40 columns, and goes on as if it were another fact."""
    forged = "risk: none; digest: 0000"
    text = TEXT + '  "note": "' + "." * 29 + " " + forged + '"\n'
    monkeypatch.setitem(VIEW, "text", text)
    monkeypatch.setitem(VIEW, "view_digest", sha256(text.encode()).hexdigest())
    on_a_screen(monkeypatch, 40)
    assert terminal("show", "c0ff") == 0
    rows = plain(terminal.out).splitlines()
    assert "digest: 0000" in "\n".join(rows)
    assert not any(row.startswith(("risk: none", "digest: 0000")) for row in rows)
    assert text.splitlines()[-1] in "\n".join(rows).replace("\n↳ ", "").splitlines()
    assert all(len(row) <= 40 for row in rows if not row.startswith("view digest"))


def test_show_of_a_decided_hold_keeps_the_lines_of_its_feedback(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"decision": "reject", "by": "mia", "feedback": "too much:\nask for 20\nat most"}
    monkeypatch.setitem(HOLD, "decision", said)
    assert terminal("show", "c0ff") == 0
    lines = terminal.out.splitlines()
    at = lines.index("feedback:")
    assert lines[at + 1 : at + 4] == ["  | too much:", "  | ask for 20", "  | at most"]


def test_question_that_is_all_its_agent_was_asked_for_is_printed_once_above_the_prompt() -> None:
    text = "placet-view 5\nasked of the agent: {}\nhold: h\nquestion: Which?\ndigest: d\n"
    around, asked = arranged(text.format("Which?"))
    assert asked == ["question: Which?"]
    assert "asked of the agent: Which?" in around, "the text is shown whole all the same"
    assert arranged(text.format("Pay it"))[1] == ["asked of the agent: Pay it", "question: Which?"]


def test_show_of_what_several_begin_with_asks_for_more(terminal: Terminal) -> None:
    assert terminal("show", "5b0a") == 1
    assert "matches 2" in terminal.err


def test_show_of_what_is_not_there_is_not_found(terminal: Terminal) -> None:
    assert terminal("show", "zzz") == 1
    assert "not_found" in terminal.err


def test_approve_shows_and_sends_the_digest(terminal: Terminal) -> None:
    assert terminal("approve", "c0ffee", "--yes", "--digest", DIGEST[:12]) == 0
    assert DIGEST in terminal.out
    body = terminal.sent()[0].json()
    assert (body["decision"], body["digest"]) == ("approve", DIGEST)
    assert body["view_digest"] == VIEW["view_digest"]
    assert sorted(TEXT.splitlines()) == sorted(
        line for line in terminal.out.splitlines() if line in TEXT.splitlines()
    )


def test_approve_as_json_prints_the_view_beside_it(terminal: Terminal) -> None:
    assert terminal("approve", "c0ffee", "--yes", "--json") == 0
    assert set(TEXT.splitlines()) <= set(terminal.err.splitlines())
    assert json.loads(terminal.out)["decision_id"] == "d1"


def test_approve_of_a_view_that_was_seen_elsewhere_does_not_print_it_again(terminal: Terminal) -> None:
    seen = str(VIEW["view_digest"])
    assert terminal("approve", "c0ffee", "--yes", "--seen", seen[:12]) == 0
    assert "arguments:" not in terminal.out
    assert terminal.sent()[0].json()["view_digest"] == seen


@pytest.mark.parametrize("seen", ["0" * 64, "0" * 8])
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
    assert "arguments other than those of the hold" in terminal.err
    assert terminal.sent() == []


def test_approve_where_nobody_can_be_asked_is_wrong_usage(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert terminal("approve", "c0ffee") == 2
    assert "--yes" in terminal.err
    assert terminal.sent() == []


@pytest.mark.parametrize("digest", ["0" * 64, "0" * 8, DIGEST + "0"])
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
    assert terminal("edit", "c0ffee", "--yes", "--arguments", '{"recipient": "GB30", "amount": 98.7}') == 0
    assert '+  "recipient": "GB30"' in terminal.out
    assert "--- asked" in terminal.out.splitlines()
    assert "\\u{a}" not in terminal.out
    assert set(TEXT.splitlines()) <= set(terminal.out.splitlines())
    assert terminal.out.index("arguments:") < terminal.out.index('+  "recipient": "GB30"')
    assert terminal.sent()[0].json()["view_digest"] == VIEW["view_digest"]
    body = terminal.sent()[0].json()
    edited = {"recipient": "GB30", "amount": 98.7}
    assert body["edited_arguments"] == edited
    assert body["digest"] == DIGEST
    assert terminal.out.splitlines()[-1] == f"in place of digest {DIGEST}", "the server says no other"


def test_edit_where_nobody_can_be_asked_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("edit", "c0ffee", "--arguments", '{"recipient": "GB30", "amount": 98.7}') == 2
    assert "there is no terminal to prompt on: give --yes" in terminal.err
    assert terminal.sent() == []


def test_edit_that_waits_for_another_person_says_so_and_names_the_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    next_hold = {
        "hold_id": "7777-next",
        "digest": "d" * 64,
        "roles": ["treasurer", "cfo"],
        "reviewers": [],
        "excluded": ["olga\u202e"],
        "exclude_requester": True,
        "quorum": 1,
        "requirements": [],
        "counted": 0,
    }

    async def answers(asked: Asked) -> Response:
        if asked.path.endswith("/decision"):
            return JSONResponse({"status": "resolved", "decision_id": "d1", "next_hold": next_hold})
        return await gateway(asked)

    with serving_thread(Scripted(on_http=answers)) as script:
        terminal = Terminal(script, capsys)
        assert terminal("edit", "c0ffee", "--yes", "--arguments", '{"amount": 1}') == 0
    assert "not released: the edited call waits as hold 7777-next" in terminal.out
    assert (
        "for one person with the role treasurer or cfo, other than those who asked for it or edited it"
        in terminal.out
    )
    assert "\u202e" not in terminal.out


@pytest.mark.parametrize("four_eyes", [True, False])
def test_approve_for_a_rule_names_it_and_says_whether_it_waits(
    capsys: pytest.CaptureFixture[str], four_eyes: bool
) -> None:
    async def answers(asked: Asked) -> Response:
        if asked.path.endswith("/decision"):
            rule = {"rule_id": "r-7", "four_eyes": four_eyes}
            return JSONResponse({"status": "resolved", "decision_id": "d1", "rule": rule})
        return await gateway(asked)

    with serving_thread(Scripted(on_http=answers)) as script:
        terminal = Terminal(script, capsys)
        assert terminal("approve", "c0ffee", "--yes", "--scope", "rule") == 0
    assert "standing rule r-7" in terminal.out
    assert ("another person must activate it: placet rules activate r-7" in terminal.out) is four_eyes


def test_edit_that_changes_nothing_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("edit", "c0ffee", "--yes", "--arguments", json.dumps(HOLD["arguments"])) == 2
    assert "these are the call's own arguments; use: placet approve" in terminal.err
    assert terminal.sent() == []


def test_edit_of_1_into_true_is_a_change(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOLD, "arguments", {"again": 1})
    monkeypatch.setitem(HOLD, "digest", call_digest("acme", "billing-bot", "send_money", "v1", {"again": 1}))
    monkeypatch.setitem(HOLD, "must_read", False)
    assert terminal("edit", "c0ffee", "--yes", "--arguments", '{"again": true}') == 0
    assert terminal.sent()[0].json()["edited_arguments"] == {"again": True}


def test_show_of_what_is_no_hold_names_the_commands_for_other_ids(terminal: Terminal) -> None:
    assert terminal("show", "invoice") == 1
    assert "placet state EXECUTION" in terminal.err


def test_edit_reads_a_file(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text('{"a": 1}')
    assert terminal("edit", "c0ffee", "--yes", "--arguments", f"@{tmp_path / 'new.json'}", "--json") == 0
    assert terminal.sent()[0].json()["edited_arguments"] == {"a": 1}
    assert json.loads(terminal.out)["decision_id"] == "d1"


@pytest.mark.parametrize("text", ["[1]", "{", '{"a":1,"a":2}', "@/no/such/file"])
def test_edit_with_no_json_object_is_wrong_usage(terminal: Terminal, text: str) -> None:
    assert terminal("edit", "c0ffee", "--arguments", text) == 2
    assert "--yes" not in terminal.err, "what is wrong in itself is told first"
    assert terminal.sent() == []


def test_reject_tells_the_agent_why(terminal: Terminal) -> None:
    assert terminal("reject", "c0ffee", "--feedback", "not on Fridays") == 0
    body = terminal.sent()[0].json()
    assert (body["decision"], body["feedback"]) == ("reject", "not on Fridays")


@pytest.mark.parametrize("feedback", ["", "  ", "\n"])
def test_reject_with_feedback_that_says_nothing_is_wrong_usage(terminal: Terminal, feedback: str) -> None:
    assert terminal("reject", "c0ffee", "--feedback", feedback) == 2
    assert "give a reason" in terminal.err
    assert terminal.sent() == []


def test_reject_without_feedback_is_wrong_usage(terminal: Terminal) -> None:
    assert terminal("reject", "c0ffee") == 2


def test_show_says_who_is_on_a_hold_and_whose_it_is(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "claimed_by", "mia")
    monkeypatch.setitem(HOLD, "claimed_until", "2026-11-20T10:00:00Z")
    monkeypatch.setitem(HOLD, "assignee", "tom")
    assert terminal("show", "c0ffee") == 0
    assert re.search(r"claimed: by mia until 2026-11-\d\d \d\d:00:00", terminal.out)
    assert re.search(r"delegated to: tom", terminal.out)


def test_approve_shows_what_is_asked_and_what_would_run_last(terminal: Terminal) -> None:
    assert terminal("approve", "c0ffee", "--yes") == 0
    lines = terminal.out.splitlines()
    last = lines.index("arguments:")
    assert lines[last - 1] == "tool: send_money"
    assert lines.index(f"digest: {DIGEST}") < lines.index("badges: bidi") < last
    assert lines[last + 1].startswith('  "recipient"')


def test_arranged_view_leaves_no_line_out_and_puts_long_arguments_before_what_is_asked() -> None:
    text = (GOLDEN / "hostile.2.txt").read_text("utf-8")
    around, asked = arranged(text)
    assert sorted(around + asked) == sorted(text.splitlines())
    names = [line.partition(":")[0] for line in asked if not line.startswith("  ")]
    assert names[:3] == ["badges", "arguments", "asked of the agent"]
    plain = arranged((GOLDEN / "plain.2.txt").read_text("utf-8"))[1]
    assert len(plain) < 20, "with how it stands and the question it fits a terminal of 24 lines"
    assert plain[0] == "asked of the agent: Pay the March invoice of ACME."
    assert plain[-1].startswith('  "recipient"')
    turn = arranged((GOLDEN / "turn.6.txt").read_text("utf-8"))[1]
    words = [line.partition(":")[0] for line in turn[1:3]]
    assert words == ["asked first in the conversation", "asked of the agent"]


@pytest.mark.parametrize(("known", "warned"), [(False, True), (True, False), (None, False)])
def test_delegate_says_that_nobody_bears_the_name(
    known: bool | None, warned: bool, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOLD, "assignee_known", known)
    assert terminal("delegate", "c0ffee", "nobody@nowhere") == 0
    assert "delegated to nobody@nowhere" in terminal.out
    assert ("nobody@nowhere is not a published principal" in " ".join(terminal.err.split())) == warned
