"""The nginx example of docs/operations.md: of what a client offers it hands on a WebSocket alone, and it waits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from grpc_health.v1 import health

from gateway.operations.calls import VERDICT_WAIT_S
from gateway.rest.parameters import WAITS_AT_MOST_S
from gateway.rpc.servicers import TELL_AGAIN_S, WATCH_S
from gateway.rpc.serving import SERVICES

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
MAPS = re.compile(r"^    map \$(\w+) \$(\w+) \{(.*)\}$", re.MULTILINE)
ENTRY = re.compile(r'("[^"]*"|\S+)\s+("[^"]*"|\S+);')
# What nginx waits for an answer, and for more of it.
BY_DEFAULT_S = 60
HEADERS = re.compile(r"proxy_set_header (\w+) \$(\w+);")


def handed_on(upgrade: str) -> dict[str, str]:
    """What the example sets of the headers that a client's `Upgrade` decides; nginx compares without case."""
    known = {"http_upgrade": upgrade}
    for source, target, text in MAPS.findall(PAGE):
        entries = {key.strip('"'): value.strip('"') for key, value in ENTRY.findall(text)}
        known[target] = entries.get(known[source].lower(), entries["default"])
    return {name: known[variable] for name, variable in HEADERS.findall(PAGE) if variable in known}


@pytest.mark.parametrize("upgrade", ["websocket", "WebSocket"])
def test_websocket_is_handed_on(upgrade: str) -> None:
    assert handed_on(upgrade) == {"Upgrade": "websocket", "Connection": "upgrade"}


@pytest.mark.parametrize("upgrade", ["", "h2c", "h2c, websocket", "websocket, h2c", "TLS/1.3", "default"])
def test_nothing_else_is_handed_on(upgrade: str) -> None:
    assert handed_on(upgrade) == {"Upgrade": "", "Connection": ""}


def test_host_is_handed_on_with_its_port() -> None:
    assert ("Host", "http_host") in HEADERS.findall(PAGE)


def test_calls_that_wait_are_answered_before_the_proxy_gives_up() -> None:
    grpc = [int(seconds) for seconds in re.findall(r"grpc_read_timeout (\d+)s;", PAGE)]
    http = [int(seconds) for seconds in re.findall(r"^ +proxy_read_timeout (\d+)s;", PAGE, re.MULTILINE)]
    assert len(grpc) == 1
    for gives_up_s in (*grpc, *(http or [BY_DEFAULT_S])):
        assert gives_up_s >= WAITS_AT_MOST_S + VERDICT_WAIT_S + 5
    # Of a watch it is the silence between two messages that counts.
    assert WATCH_S + TELL_AGAIN_S < BY_DEFAULT_S


def test_services_are_those_behind_the_proxy() -> None:
    (pattern,) = re.findall(r"location ~ (\S+) \{", PAGE)
    for service in (*SERVICES, health.SERVICE_NAME, "grpc.reflection.v1.ServerReflection"):
        assert re.search(pattern, f"/{service}/Any")
    assert re.search(pattern, "/v1/holds") is None
