"""Whoever takes a server says so: by the marks, runs without servers leave its test out."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conftest import LEFT_OUT, SERVERS
from tests.house.sources import ROOT
from tests.suite import ALL_ON_SERVERS, WITHOUT_SERVERS


def test_every_test_that_takes_a_server_has_its_mark(request: pytest.FixtureRequest) -> None:
    unmarked = [
        item.nodeid
        for item in request.session.items
        for fixture in SERVERS.keys() & set(getattr(item, "fixturenames", ()))
        if item.get_closest_marker(SERVERS[fixture]) is None
    ]
    assert unmarked == [], "\n".join(unmarked)


def test_parts_of_the_suite_lose_no_test(request: pytest.FixtureRequest) -> None:
    """`tests.suite` names paths besides marks, so that its parts collect less."""
    all_on_servers = ROOT / ALL_ON_SERVERS
    alone = [file for file in (ROOT / "tests").rglob("test_*.py") if "mark.alone" in file.read_text("utf-8")]
    assert [
        file for file in alone if not file.is_relative_to(all_on_servers) and file.name != "test_servers.py"
    ] == []
    assert [
        file
        for file in all_on_servers.rglob("test_*.py")
        if "\npytestmark = [pytest.mark.stack, " not in file.read_text("utf-8")
    ] == []
    assert [room for room in WITHOUT_SERVERS if not (ROOT / "tests" / room).is_dir()] == []
    rooms = tuple(f"tests/{room}/" for room in WITHOUT_SERVERS)
    assert [
        item.nodeid
        for item in (*request.session.items, *request.config.stash.get(LEFT_OUT, ()))
        if item.nodeid.startswith(rooms) and any(map(item.get_closest_marker, SERVERS.values()))
    ] == []


def test_no_two_tests_have_one_id(request: pytest.FixtureRequest) -> None:
    """Of those, pytest-xdist would run one alone."""
    every = (*request.session.items, *request.config.stash.get(LEFT_OUT, ()))
    assert [name for name, count in Counter(item.nodeid for item in every).items() if count > 1] == []
