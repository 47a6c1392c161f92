"""The words of a message: nothing of an agent's is taken for markup, and nothing hidden stays hidden."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.processors.notifications.notice import ASKING, Notice
from services.processors.notifications.render import (
    DIGEST_DOCUMENTS,
    digest,
    document,
    plain,
    single,
    trial,
)
from tests.processors.notifications.holds import notice

BASE = "https://placet.example.com"
NASTY = (
    "<!here> @channel <@U123> [pay](https://evil.com) **b** `x` ~s~ a|b # h &lt; javascript:x mailto:a@b.c "
    "\u202egnp.exe\u2066\x1b[31m\r\n# head\n@everyone \u200bwww.evil.com "
    "=?utf-8?B?4oCuZXZpbA==?= :white_check_mark: :100: a:+1: _safe_"
)


def request() -> Notice:
    """A notice of a question that is about no call."""
    asked = notice(tool="", call_id="")
    return replace(asked, hold=replace(asked.hold, kind="env_var"))


@pytest.mark.parametrize(
    "harmful",
    [
        *("<", ">", "@", "[", "]", "`", "*", "~", "|", "#", "&", "://", ".com", "\n", "\r", "\x1b"),
        *("=?", "?=", ":white", ":100", ":+1", "_safe", "safe_"),
    ],
)
def test_plain_markup_of_messengers_is_gone(harmful: str) -> None:
    assert harmful in NASTY
    assert harmful not in plain(NASTY, 1000)


def test_plain_hidden_characters_are_shown_as_such() -> None:
    shown = plain(NASTY, 1000)
    assert "\\u{202e}" in shown
    assert "\\u{200b}" in shown


def test_plain_ordinary_words_stay_as_they_are() -> None:
    ordinary = (
        "Send 1.50 EUR to Zoë (invoice_7) at 12:30:15, 2026-11-23T18:30:00Z or (18:30), a=b: soon? Ratio 3:1"
    )
    assert plain(ordinary, 200) == ordinary


@pytest.mark.parametrize(
    "address",
    ["tel:123", "TEL:+4912", "sms:1", "x-web+a.b:c", "(tel:123)", "_tel:1", "data:text/html,x", "h323:a"],
)
def test_plain_address_of_any_scheme_has_no_colon_of_its_own(address: str) -> None:
    for text in (address, f"call {address} at 18:30", f"18:30 {address}"):
        shown = plain(text, 100)
        assert shown == text.replace(address, plain(address, 100))
        assert ":" not in shown.replace("18:30", "")


@given(st.text(max_size=400))
def test_plain_any_text_is_one_bounded_line_without_markup(text: str) -> None:
    shown = plain(text, 100)
    assert len(shown) <= 100
    assert not set(shown) & set("<>@[]`*~|#&\n\r\u202e\u2066\u200b\x00")
    assert "://" not in shown
    assert "=?" not in shown


def test_single_text_holds_one_link_and_it_is_ours() -> None:
    message = single(notice(question=NASTY, tool=NASTY, agent=NASTY, roles=(NASTY,)), BASE)
    assert message.text.count("://") == 1
    assert f"See it: {BASE}/holds/h1" in message.text.splitlines()
    assert "Opening the link decides nothing." in message.text
    for shown in (message.title, message.text.replace(BASE, "")):
        assert not set(shown) & set("<>@[]`*~|#&\r\u202e")
    assert "\n" not in message.title


def test_single_long_values_are_cut() -> None:
    message = single(notice(question="q" * 100_000, tool="t" * 5_000), BASE)
    assert len(message.text) < 1500
    assert len(message.title) < 300
    assert len(json.dumps(message.document)) < 3000


def test_document_has_what_machines_need_and_no_arguments() -> None:
    told = document(notice(question="a\u202eb"), BASE)
    assert set(told) == {
        *("id", "type", "at", "tenant", "project", "hold_id", "execution_id", "call_id", "kind", "agent"),
        *("tool", "risk", "roles", "question", "deadline_at", "detail", "link"),
    }
    assert told["question"] == "a\\u{202e}b"
    assert told["link"] == f"{BASE}/holds/h1"


@pytest.mark.parametrize("kind", sorted({*ASKING, "hold_expired", "hold_resolved"}))
def test_single_every_event_has_its_words(kind: str) -> None:
    message = single(notice(kind=kind, detail="ann"), BASE)  # type: ignore[arg-type]
    assert "send_money" in message.title
    assert message.document["type"] == kind


def test_single_request_without_a_tool_is_called_a_question() -> None:
    message = single(request(), BASE)
    assert message.title == "Placet: a question (env var) waits for a decision"
    assert (message.document["tool"], message.document["call_id"]) == (None, None)


def test_digest_same_notices_have_the_same_id_and_say_how_many_wait() -> None:
    found = [notice(number) for number in range(17)]
    first, again = digest("n/1", found, BASE), digest("n/1", found, BASE)
    assert first == again
    assert first.id != digest("n/2", found, BASE).id
    assert first.title == "Placet: 17 more holds wait"
    assert first.document["count"] == 17


def test_digest_of_very_many_is_bounded() -> None:
    message = digest("n/1", [notice(number) for number in range(500)], BASE)
    assert message.document["count"] == 500
    assert len(message.document["messages"]) == DIGEST_DOCUMENTS
    assert message.text.endswith("and 480 more")


def test_trial_says_that_it_is_a_test() -> None:
    message = trial("n/1", "id", 0)
    assert message.document["type"] == "test"
    assert "test" in message.title
