"""The report in a terminal, as JSON and as a page: hostile texts of the log stay texts."""

from __future__ import annotations

import asyncio
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ops.backtest.found import Found
from ops.backtest.history import Candidate
from ops.backtest.html import check_place, page, write_report
from ops.backtest.naming import named_of
from ops.backtest.partition import Window
from ops.backtest.report import Report
from ops.backtest.telling import json_of, tell
from ops.errors import UsageError
from ops.fork.naming import fork_project
from schemas import commands as k
from schemas.policy_document import policy_from_value
from tests.actions.planting import plant
from tests.domain.world import OLGA, PROJECT, RITA, RULES, TENANT, the
from tests.gateway.browser import open_page, served
from tests.ops.backtest.past import Past, policy
from tests.sdk.terminal import on_a_screen, plain

HOSTILE = '</td><script>alert(1)</script><img src=x onerror="alert(1)">&\x1b[31m'
ALL_PASS = policy({"id": "all", "match": {"tools": ["*"]}, "then": "allow"})


def past() -> Past:
    made = Past()
    made.tools()
    made.policy(policy(*RULES))
    made.start()
    return made


def told(found: Found, *named: str) -> Report:
    candidate = Candidate(policy_from_value(ALL_PASS), TENANT)
    return Report(candidate, Window(), found, named_of(found.overruled, named)[0], 1.0)


def hostile() -> Found:
    made = past()
    hold = the(made.propose("pay", amount=5, to=HOSTILE), "HoldOpened")
    made.decide(hold, "reject", feedback=HOSTILE)
    made.propose("read", "allowed")
    made.propose("<script>x</script>", "odd-tool", note=HOSTILE)
    return made.against(ALL_PASS)


class _Tags(HTMLParser):
    """The elements of a page, with their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_page_has_no_element_of_the_log_and_loads_nothing() -> None:
    tags = _Tags(page(told(hostile())))

    names = {tag for tag, _ in tags.found}
    assert not names & {
        "script",
        "img",
        "iframe",
        "link",
        "object",
        "image",
        "a",
        "foreignobject",
        "base",
        "form",
    }
    attributes = [(name, value or "") for _, found in tags.found for name, value in found.items()]
    assert not [
        name for name, _ in attributes if name.startswith("on") or name in ("src", "href", "xlink:href")
    ]
    assert not [value for name, value in attributes if "//" in value and not name.startswith("xmlns")]
    assert any("<script>alert(1)</script>" in text for text in tags.texts)
    policy_of_page = next(found["content"] for tag, found in tags.found if "http-equiv" in found)
    assert policy_of_page == "default-src 'none'; style-src 'unsafe-inline'"
    assert names >= {"svg", "table"}


def test_page_has_a_landmark_names_its_columns_and_writes_numbers_at_bars() -> None:
    made = past()
    made.start("y")
    for run in ("x", "y"):
        hold = the(made.propose("pay", execution_id=run), "HoldOpened")
        made.ask(k.DecideHold(hold_id=hold.hold_id, decision="reject", digest=hold.digest), RITA, run)
    found = made.against(ALL_PASS)
    text = page(told(found, "main/x/c"))
    tags = _Tags(text)

    assert [tag for tag, _ in tags.found].count("main") == 1
    heads = [found.get("data-head") for tag, found in tags.found if tag == "td"]
    assert {"call", "arguments", "people"} <= set(heads)
    assert None not in heads
    assert "pay: 2" in tags.texts, "a bar's number beside its name"
    assert "1</strong> call that people were against would pass, and is not named" in text
    assert "2</strong> calls that people were against would pass, and are not named" in page(told(found))


# The lines that each tool's name takes.
LINES = "[...document.querySelectorAll('[data-head=tool] span')].map(one => one.getClientRects().length)"


async def _at_width(text: str, width: int) -> tuple[int, list[int]]:
    """The width that a page takes in a window of this one, and the lines of each tool's name."""
    with served({"/": text.encode()}) as origin:
        async with open_page(f"{origin}/") as shown:
            await shown.set_viewport_size({"width": width, "height": 900})
            wide = await shown.evaluate("document.documentElement.scrollWidth")
            return wide, await shown.evaluate(LINES)


@pytest.mark.parametrize("width", [375, 800, 1280])
def test_page_is_no_wider_than_its_window_and_breaks_no_short_word(width: int) -> None:
    made = past()
    hold = the(made.propose("pay", "pay-the-invoice-of-march", amount=5, to="bob"), "HoldOpened")
    made.decide(hold, "reject", feedback="this is not the account of bob")

    wide, lines = asyncio.run(_at_width(page(told(made.against(ALL_PASS))), width))

    assert wide == width
    assert lines == [1] * len(lines) != []


def test_page_of_an_empty_history_says_so() -> None:
    text = page(told(Found(project="*")))

    assert "Records read: 0" in text
    assert "No call that people were against" not in text
    assert "nothing is known of this policy" in text


def test_page_is_written_or_the_file_is_named(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", told(hostile()))

    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(tmp_path / "missing" / "report.html", told(hostile()))


def test_page_is_its_owners_alone_also_in_place_of_another(tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    place.write_text("earlier")
    place.chmod(0o644)

    write_report(place, told(hostile()))

    assert place.stat().st_mode & 0o777 == 0o600
    check_place(place)
    check_place(tmp_path / "other.html")
    for bad in (tmp_path, tmp_path / "missing" / "report.html", place / "report.html"):
        with pytest.raises(UsageError, match="cannot be written"):
            check_place(bad)


def test_hidden_characters_and_cut_arguments_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    made = past()
    bodies = made.propose("pay", amount=5, note="safe\u202egpj.exe" + "A" * 500)
    made.decide(the(bodies, "HoldOpened"), "reject", feedback="ok \u202eevil")
    found = made.against(ALL_PASS)

    text = page(told(found))
    tell(told(found))
    shown = capsys.readouterr().out

    for one in (text, shown):
        assert "\u202e" not in one
        assert "202e" in one
    assert "AAA…" in text
    assert found.rows[0].arguments.endswith("…")


def test_json_has_every_list_and_what_is_named() -> None:
    found = hostile()

    whole = json.loads(json.dumps(json_of(told(found))))

    assert (whole["ok"], whole["judged"], whole["reproduced"]) == (False, 3, 3)
    assert (whole["newly_allowed"], whole["newly_asked"], whole["newly_denied"]) == (1, 0, 0)
    (row,) = whole["rejected_would_pass"]
    assert (row["call_id"], row["word"], row["feedback"], row["named"]) == ("c", "rejected", HOSTILE, False)
    assert row in whole["changed"]
    assert whole["changed_left_off"] == 0
    assert json_of(told(found, "main/x/c"))["ok"]


def test_terminal_shows_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    tell(told(hostile()))

    out = capsys.readouterr().out
    assert "\x1b[31m" not in out
    assert "1 of them is not named" in out
    assert "--allow-named main/x/c" in out
    tell(told(hostile(), "main/x/c"))
    assert "no call that people were against would pass without being named" in capsys.readouterr().out


def test_calls_that_block_break_no_word_on_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = past()
    hold = the(made.propose("pay", call_id="pay-the-invoice-of-march", amount=5, to="bob"), "HoldOpened")
    made.decide(hold, "reject", feedback="this is not the account of bob")
    report = told(made.against(ALL_PASS))
    on_a_screen(monkeypatch, 80)

    tell(report)

    lines = plain(capsys.readouterr().out).splitlines()
    begins = lines.index("1: people were against these calls, and they would now pass")
    lines = lines[
        begins : lines.index("1 of them is not named: change the policy, or name each, if it may pass:")
    ]
    assert all(len(line) <= 80 for line in lines), lines
    words = {word for line in lines for word in line.split()}
    assert {
        "main/x/pay-the-invoice-of-march",
        '{"amount":5,"to":"bob"}',
        "rejected",
        "(p@1/payments)",
        "account",
    } <= words


def test_terminal_names_what_was_not_reproduced_and_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    made = past()
    made.adopt(1_000)
    made.propose("read")

    tell(told(made.against(ALL_PASS)))

    assert "1 not judged:" in capsys.readouterr().err


def test_names_stand_for_one_call_each() -> None:
    made = past()
    made.start("y")
    for execution_id in ("x", "y"):
        hold = the(made.propose("pay", execution_id=execution_id), "HoldOpened")
        made.ask(
            k.DecideHold(hold_id=hold.hold_id, decision="reject", digest=hold.digest), RITA, execution_id
        )
    rows = made.against(ALL_PASS).overruled

    assert named_of(rows, ["main/y/c", "gone"]) == (frozenset({"main/y/c"}), ["gone"])
    assert named_of(rows, ["c", "x/c"]) == (frozenset(), ["c", "x/c"])


def test_planted_calls_are_left_out_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    made = past()
    for run, word in (("planted", "approve"), ("again", "reject")):
        hold = the(made.ask(plant(), OLGA, run), "HoldOpened")
        made.ask(k.DecideHold(hold_id=hold.hold_id, decision=word, digest=hold.digest), RITA, run)
    made.propose("read")

    found = made.against(ALL_PASS)
    tell(told(found))

    assert (found.planted, found.judged, found.reproduced, found.rows) == (2, 1, 1, [])
    assert found.is_complete
    assert json_of(told(found))["planted"] == 2
    for text in (page(told(found)), capsys.readouterr().out):
        assert "left out, as no history of the agents: verdicts on planted calls: 2" in text
    assert "planted" not in told(made.against(ALL_PASS, tenant="other")).left_out


def test_history_of_planted_calls_alone_says_nothing_of_a_policy() -> None:
    made = past()
    made.ask(plant(), OLGA, "planted")

    report = told(made.against(ALL_PASS))

    assert not report.is_ok
    assert report.emptiness


def test_runs_that_forks_made_are_left_out_of_the_whole_tenant(capsys: pytest.CaptureFixture[str]) -> None:
    made = past()
    forked, alike = fork_project("x"), fork_project("y")
    for project in (PROJECT, forked, alike):
        made.world.project = project
        if project != PROJECT:
            made.start()
        made.decide(the(made.propose("pay"), "HoldOpened"), "reject")
    made.raw(f"{TENANT}/fork-".encode(), b"no record")

    found = made.against(ALL_PASS)
    tell(told(found))

    assert [row.project for row in found.rows] == [PROJECT, alike]
    assert (found.forks, json_of(told(found))["forks"]) == (1, 1)
    for text in (page(told(found)), capsys.readouterr().out):
        assert "left out, as no history of the agents: runs that `placet fork` made: 1" in text
    alone = made.against(ALL_PASS, project=forked)
    assert ([row.project for row in alone.rows], alone.forks) == ([forked], 0)
    assert made.against(ALL_PASS, Window(None, made.world.now_ms)).forks == 0
