"""The nginx example of docs/operations.md: of what a client offers it hands on a WebSocket alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
MAPS = re.compile(r"^    map \$(\w+) \$(\w+) \{(.*)\}$", re.MULTILINE)
ENTRY = re.compile(r'("[^"]*"|\S+)\s+("[^"]*"|\S+);')
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
