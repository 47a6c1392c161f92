"""The page that a notification's link opens: it shows a hold to who may see it, and decides nothing."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]

EVIL = "<script>fetch('https://evil.example')</script>"


def shown(doors: Doors, hold_id: str, token: str) -> httpx.Response:
    return doors.client.post(f"{doors.url}/holds/{hold_id}", data={"token": token})


def test_page_is_the_same_for_every_id_and_tells_nothing_before_sign_in(doors: Doors, bot: Caller) -> None:
    hold_id = bot.propose(bot.execution())["hold_id"]
    page = doors.client.get(f"{doors.url}/holds/{hold_id}")
    assert page.status_code == 200
    assert page.text == doors.client.get(f"{doors.url}/holds/no-such-hold").text
    assert hold_id not in page.text
    assert 'type="password"' in page.text
    assert page.headers["cache-control"] == "no-store"
    policies = page.headers["content-security-policy"]
    assert "default-src 'none'" in policies
    assert "form-action 'self'" in policies
    assert "set-cookie" not in page.headers
    assert not re.search(r"<script|<style|src=|href=|https?://", page.text)


def test_page_shows_the_whole_view_as_text_and_says_how_to_decide(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    call = bot.propose(bot.execution(), "unknown_tool", arguments={"to": EVIL})
    page = shown(doors, call["hold_id"], anna.token)
    assert page.status_code == 200, page.text
    view = anna.get(f"/v1/holds/{call['hold_id']}/view").json()
    assert view["text"] in unescape(page.text)
    assert EVIL not in page.text
    assert f"placet approve {call['hold_id']} --seen {view['view_digest']}" in page.text
    assert anna.token not in page.text
    assert anna.get(f"/v1/holds/{call['hold_id']}").json()["status"] == "open"
    refused = anna.post(
        f"/v1/holds/{call['hold_id']}/decision", {"decision": "reject", "digest": call["digest"]}
    )
    assert refused.status_code == 200
    closed = shown(doors, call["hold_id"], anna.token)
    assert "reject by anna" in closed.text
    assert "placet approve" not in closed.text


def test_page_of_variables_has_nobody_type_them_on_a_command_line(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    for kind, more, told in (("env_var", {"fields": ["KEY"]}, "</"), ("clarification", {}, " VALUE")):
        hold_id = bot.post("/v1/requests", {"question": "?", "kind": kind, **more}).json()["hold_id"]
        page = shown(doors, hold_id, anna.token)
        assert f"placet answer {hold_id}{told}" in page.text


NO_IDS = {
    "zero byte": "%00",
    "zero byte inside": "a%00b",
    "no UTF-8": "%FF",
    "half of a character": "%ED%A0%80",
    "line's end": "%0D%0ASet-Cookie:%20a=b",
    "markup": "%3Cscript%3E",
    "blank": "a b",
    "long": "a" * 3_000,
}


@pytest.mark.parametrize("no_id", NO_IDS.values(), ids=NO_IDS.keys())
def test_page_of_what_can_be_no_holds_id_is_as_that_of_any_other(
    doors: Doors, anna: Caller, no_id: str
) -> None:
    unknown = doors.client.get(f"{doors.url}/holds/no-such-hold")
    found = doors.client.get(f"{doors.url}/holds/{no_id}")
    assert (found.status_code, found.text) == (200, unknown.text)
    unknown = shown(doors, "no-such-hold", anna.token)
    found = shown(doors, no_id, anna.token)
    assert (found.status_code, found.text) == (404, unknown.text)


@pytest.mark.parametrize("no_id", NO_IDS.values(), ids=NO_IDS.keys())
def test_no_documented_route_answers_what_can_be_no_id_otherwise_than_with_a_problem(
    doors: Doors, no_id: str
) -> None:
    admin = doors.caller("root", "admin")
    document = doors.client.get(f"{doors.url}/openapi.json").json()
    asked = 0
    for path, methods in document["paths"].items():
        for method in {"get", "put", "post", "delete"} & set(methods):
            if "{" not in path or not path.startswith("/v1/"):
                continue
            body: dict[str, Any] | None = {} if method in ("put", "post") else None
            answer = admin.call(method.upper(), re.sub(r"\{[^}]*\}", no_id, path), body)
            # What a policy is called is one of the problems that checking it tells.
            is_told = answer.status_code == 200 and path.endswith("/check")
            is_problem = answer.headers["content-type"] == "application/problem+json"
            assert is_told or (is_problem and answer.status_code < 500), (method, path, answer.text)
            asked += 1
    assert asked > 30


def test_page_refuses_whoever_may_not_see_it(doors: Doors, bot: Caller) -> None:
    hold_id = bot.propose(bot.execution())["hold_id"]
    stranger = doors.token("mallory", "reviewer", "admin", tenant="other")
    answers = {
        "stranger": shown(doors, hold_id, stranger),
        "nonsense": shown(doors, hold_id, "nonsense"),
        "nothing": shown(doors, hold_id, ""),
        "long": shown(doors, hold_id, "x" * 100_000),
        "json": doors.client.post(f"{doors.url}/holds/{hold_id}", json={"token": "x"}),
        "url": doors.client.post(f"{doors.url}/holds/{hold_id}?token=x", data={"token": "x"}),
    }
    statuses = {name: answer.status_code for name, answer in answers.items()}
    assert statuses == {
        "stranger": 404,
        "nonsense": 401,
        "nothing": 401,
        "long": 413,
        "json": 400,
        "url": 401,
    }
    assert all("send_money" not in answer.text for answer in answers.values())
    # A token in a URL is refused before any page is asked for.
    assert "URL" in answers.pop("url").json()["detail"]
    assert all('role="alert"' in answer.text for answer in answers.values())
