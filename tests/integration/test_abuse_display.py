"""Cases 16 and 19 of the abuse list: arguments that deceive the eye, and arguments that would like to be run."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from schemas.canonical import call_digest, canonical
from tests.integration.doors import Tenant, new_tenant, refused
from tests.integration.site import PAY, Site
from tests.integration.test_abuse_bodies import terminal

pytestmark = [pytest.mark.stack, pytest.mark.broker]

POLICY = """
policy: own
rules:
  - id: payments
    match: {tools: [send_money]}
    then: hold
    hold: {question: "Pay {{args.to}}?", timeout_seconds: 3600}
"""
DECEIVING = {
    "bidi": ("GB29\u202e92BG", "\\u{202e}"),
    "zero_width": ("GB\u200b29", "\\u{200b}"),
    "tag": ("GB29\U000e0041", "\\u{e0041}"),
    "ansi": ("GB29\x1b[2K\x1b[1G", "\\u{1b}"),
    "homoglyph": ("p\u0430ypal", "p\\u{430}ypal"),
    "lookalike_host": ("https://\u0430pple.com/pay", "https://\\u{430}pple.com/pay"),
}
ACTIVE = {
    "html": '<img src="https://evil.example/p.png" onerror="alert(1)">',
    "script": "<script>fetch('https://evil.example/')</script>",
    "markdown image": "![p](https://evil.example/p.png)",
    "markdown link": "[your bank](javascript:alert(1))",
}


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY, PAY) as found:
        yield found


def shown(tenant: Tenant, to: str) -> tuple[Any, Any, Any]:
    """A held payment: the call, its hold, and what a person is shown."""
    call = tenant.propose(tenant.execution(), "send_money", {"to": to, "amount": 5})
    hold = tenant.rita.get(f"/holds/{call['hold_id']}").json()
    return call, hold, tenant.rita.get(f"/holds/{call['hold_id']}/view").json()


@pytest.mark.parametrize("badge", DECEIVING)
def test_case_16_what_deceives_the_eye_is_shown_escaped_and_badged(tenant: Tenant, badge: str) -> None:
    raw, visible = DECEIVING[badge]
    call, hold, view = shown(tenant, raw)

    assert badge in view["badges"]
    assert badge in hold["badges"]
    assert visible in view["text"]
    assert raw not in view["text"]
    assert sha256(view["text"].encode()).hexdigest() == view["view_digest"]
    arguments = canonical({"to": raw, "amount": 5})
    assert call["digest"] == call_digest(tenant.name, "bot", "send_money", call["tool_version"], arguments), (
        "the digest is over the raw bytes"
    )
    printed = terminal(tenant, "show", call["hold_id"])
    assert visible in printed.stdout
    assert raw not in printed.stdout
    assert "\x1b" not in printed.stdout


def test_case_16_hidden_characters_are_approved_only_by_who_was_shown_them(tenant: Tenant) -> None:
    call, hold, view = shown(tenant, DECEIVING["bidi"][0])
    assert hold["must_read"]
    assert refused(tenant.decide(call)) == (422, "invalid")
    assert refused(tenant.decide(call, view_digest="0" * 64)) == (409, "digest_mismatch")
    assert tenant.decide(call, view_digest=view["view_digest"]).json()["status"] == "resolved"
    after = tenant.rita.get(f"/holds/{call['hold_id']}/view?at=decision").json()
    assert after["text"] == view["text"]
    assert after["seen"][0]["view_digest"] == view["view_digest"]
    assert tenant.call(call["execution_id"])["approved_arguments"]["to"] == DECEIVING["bidi"][0]


def test_case_16_account_with_strokes_through_its_digits_is_shown_by_its_code_points(tenant: Tenant) -> None:
    call = tenant.propose(tenant.execution(), "send_money", {"to": "GB1\u03380\u0336", "amount": 5})
    hold = tenant.rita.get(f"/holds/{call['hold_id']}").json()
    view = tenant.rita.get(f"/holds/{call['hold_id']}/view").json()

    assert '"GB1\\u{338}0\\u{336}"' in view["text"]
    assert sha256(view["text"].encode()).hexdigest() == view["view_digest"]
    assert hold["badges"] == view["badges"] == ["covering"]
    assert refused(tenant.decide(call)) == (422, "invalid")
    assert '"GB1\\u{338}0\\u{336}"' in terminal(tenant, "show", call["hold_id"]).stdout


def test_case_16_tool_with_spaces_behind_its_name_looks_like_no_other(tenant: Tenant) -> None:
    call = tenant.propose(tenant.execution(), "send_money" + " " * 20, {"to": "GB29", "amount": 5})
    hold = tenant.rita.get(f"/holds/{call['hold_id']}").json()
    view = tenant.rita.get(f"/holds/{call['hold_id']}/view").json()

    assert "\ntool: send_money\\s{20}\n" in view["text"]
    assert sha256(view["text"].encode()).hexdigest() == view["view_digest"]
    assert "padding" in view["badges"]
    assert hold["badges"] == ["padding"]
    assert hold["must_read"]
    assert refused(tenant.decide(call)) == (422, "invalid")
    assert "send_money\\s{20}" in terminal(tenant, "show", call["hold_id"]).stdout


@pytest.mark.parametrize("kind", ACTIVE)
def test_case_19_active_content_is_inert_text_and_badged(tenant: Tenant, kind: str) -> None:
    call, _, view = shown(tenant, ACTIVE[kind])

    assert "markup" in view["badges"]
    assert ACTIVE[kind].replace('"', '\\"') in view["text"]
    answer = tenant.rita.get(f"/holds/{call['hold_id']}/view")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    printed = terminal(tenant, "show", call["hold_id"])
    assert ACTIVE[kind].replace('"', '\\"') in printed.stdout
    assert "\x1b]8" not in printed.stdout, "no link that a click would follow"
