"""The notifications file: what is refused, with which words, and that no secret is in them."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.processors.notifications.config import load_notifications
from services.processors.notifications.document import (
    Delivery,
    NotificationsRefused,
    link_to,
    parse_notifications,
    read_document,
)
from tests.house.sources import ROOT

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


def one(**changed: Any) -> dict[str, Any]:
    hook = {"webhook": {"url": "https://example.com/hooks", "secret_env": "HOOK"}}
    return {"id": "n", "when": {"events": ["hold_opened"]}, "to": [hook], **changed}


def text_of(*notifications: dict[str, Any], **top: Any) -> str:
    return yaml.safe_dump({"notifications": list(notifications), **top})


def problems_in(text: str) -> dict[str, str]:
    with pytest.raises(NotificationsRefused) as refused:
        parse_notifications(text)
    return {problem.path: problem.message for problem in refused.value.problems}


def hook(**fields: Any) -> dict[str, Any]:
    return one(to=[{"webhook": {"url": "https://example.com/", "secret_env": "HOOK", **fields}}])


def test_parse_whole_file_is_read_with_its_defaults() -> None:
    found = parse_notifications(text_of(one(), link_base="https://placet.example.com")).notifications[0]
    assert (found.delivery.tries, found.delivery.within_seconds, found.delivery.per_minute) == (6, 600, 30)
    assert (found.when.tenant, found.when.tools, found.when.roles) == ("*", (), ())


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (text_of(one(whn={})), "notifications[0].whn", "unknown field 'whn'; did you mean 'when'?"),
        (
            text_of(one(when={"events": ["hold_opened"], "rolez": ["x"]})),
            "notifications[0].when.rolez",
            "unknown field 'rolez'; did you mean 'roles'?",
        ),
        (text_of(one(when={})), "notifications[0].when.events", "this field is missing; add it"),
        (text_of(one(to=[{}])), "notifications[0].to[0]", "a target is one of webhook and apprise"),
        (
            text_of(hook(secret_file="x")),
            "notifications[0].to[0].webhook",
            "name the secret by exactly one of secret_env and secret_file",
        ),
        (
            text_of(one(to=[{"apprise": {}}])),
            "notifications[0].to[0].apprise",
            "name the address by exactly one of url_env and url_file",
        ),
        (
            text_of(one(), one()),
            "notifications[1].id",
            "the id 'n' appears 2 times; give each notification its own",
        ),
        (text_of(one(), link_base="ftp://x"), "link_base", "this is not a web address"),
        (text_of(one(), link_base="https://x/{hold}"), "link_base", "the only placeholder is one {hold_id}"),
        ("[]", "notifications", "the file is a mapping that begins with 'notifications:'"),
        ("notifications: &a\n", "line 1, column 16", ""),
        ("a: 1\na: 2\n", "line 2, column 1", "the key 'a' appears twice; keep one of the two"),
    ],
)
def test_parse_mistake_is_named_where_it_stands(text: str, path: str, message: str) -> None:
    found = problems_in(text)
    assert path in found or path.startswith("line")
    assert message in found.get(path, message)


@pytest.mark.parametrize(
    "empty", ["tenant", "project", "tools", "roles", "kinds", "risk", "agents", "events"]
)
def test_parse_condition_left_empty_is_refused_and_matches_nobody(empty: str) -> None:
    when = {"events": ["hold_opened"], empty: None}
    assert f"notifications[0].when.{empty}" in problems_in(text_of(one(when=when)))
    when = {"events": ["hold_opened"], empty: []}
    assert f"notifications[0].when.{empty}" in problems_in(text_of(one(when=when)))


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "http://10.0.0.1/",
        "http://localhost.example.com/",
        "https://user:pa55@example.com/",
        "https://example.com/#pa55",
        "https:///x",
        "https://example.com:port/",
        "file:///etc/passwd",
        "https://exämple.com/",
        "https://example.com/a b",
        "//example.com",
    ],
)
def test_parse_unsafe_webhook_address_is_refused_without_showing_it(url: str) -> None:
    found = problems_in(text_of(hook(url=url)))
    assert list(found) == ["notifications[0].to[0].webhook.url"]
    assert "pa55" not in str(found)
    assert "example.com/" not in str(found).replace("https://example.com/hooks", "")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://[::1]:9/", "http://localhost/x"])
def test_parse_loopback_address_may_be_in_the_clear(url: str) -> None:
    assert parse_notifications(text_of(hook(url=url))).notifications


@pytest.mark.parametrize("field", ["secret", "secret_env"])
def test_parse_secret_written_into_the_file_is_refused_and_not_shown(field: str) -> None:
    found = problems_in(text_of(hook(**{field: SECRET})))
    assert f"notifications[0].to[0].webhook.{field}" in found
    assert SECRET[6:] not in str(found)


def test_load_secret_of_variable_and_file_makes_endpoints_with_keys(tmp_path: Path) -> None:
    (tmp_path / "hook.secret").write_text(f"{SECRET}\n")
    both = [
        {"webhook": {"url": "https://example.com/", "secret_file": "hook.secret"}},
        {"apprise": {"url_env": "SLACK"}},
    ]
    file = tmp_path / "n.yaml"
    file.write_text(text_of(one(to=both)))
    found = load_notifications(file, {"SLACK": "json://localhost/token"}, "https://here")
    assert [(one.key, one.channel.kind) for one in found.endpoints] == [
        ("n/1", "webhook"),
        ("n/2", "apprise"),
    ]
    assert found.link_base == "https://here"
    assert SECRET not in repr(found)
    assert "token" not in repr(found)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"webhook": {"url": "https://e.com/", "secret_env": "NOWHERE"}}, "the variable NOWHERE is not set"),
        ({"webhook": {"url": "https://e.com/", "secret_env": "SHORT"}}, "24 to 64 random bytes"),
        ({"webhook": {"url": "https://e.com/", "secret_file": "none"}}, "cannot be read (FileNotFoundError)"),
        ({"apprise": {"url_env": "SHORT"}}, "apprise does not support this address"),
    ],
)
def test_load_secret_that_is_not_usable_is_refused_and_not_shown(
    tmp_path: Path, target: dict[str, Any], message: str
) -> None:
    file = tmp_path / "n.yaml"
    file.write_text(text_of(one(to=[target])))
    with pytest.raises(NotificationsRefused) as refused:
        load_notifications(file, {"SHORT": "c2VjcmV0"}, "")
    assert refused.value.problems[0].path == "notifications[0].to[0]"
    assert message in str(refused.value)
    assert "c2VjcmV0" not in str(refused.value)


def test_read_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotificationsRefused, match="name a file that exists"):
        read_document(tmp_path / "nowhere.yaml")


def test_link_to_hold_is_the_gateways_or_a_page_of_ones_own() -> None:
    assert link_to("https://p.example.com/", "h1") == "https://p.example.com/holds/h1"
    assert link_to("https://c.example.com/console#/{hold_id}", "h1") == "https://c.example.com/console#/h1"


def test_page_names_what_delivery_takes_at_most() -> None:
    page = (ROOT / "docs/notifications.md").read_text("utf-8")
    for name, schema in Delivery.model_json_schema()["properties"].items():
        assert re.search(rf"`{name}`[^;).]*\b{schema['maximum']}\b", page), name
        assert re.search(rf"\b{name}: {schema['default']}\b", page), name
