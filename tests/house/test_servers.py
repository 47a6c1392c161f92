"""Whoever takes a server says so: by the marks, runs without servers leave its test out."""

from __future__ import annotations

import pytest

from tests.conftest import SERVERS
from tests.house.sources import ROOT
from tests.suite import ALONE, PLAIN


def test_every_test_that_takes_a_server_has_its_mark(request: pytest.FixtureRequest) -> None:
    unmarked = [
        item.nodeid
        for item in request.session.items
        for fixture in SERVERS.keys() & set(getattr(item, "fixturenames", ()))
        if item.get_closest_marker(SERVERS[fixture]) is None
    ]
    assert unmarked == [], "\n".join(unmarked)


def test_parts_of_the_suite_lose_no_test() -> None:
    """`tests.suite` names paths besides marks, so that its parts collect less."""
    (alone,) = (option for option in ALONE.options if not option.startswith("-"))
    (ignored,) = (
        option.removeprefix("--ignore=") for option in PLAIN.options if option.startswith("--ignore=")
    )
    marked = [file for file in (ROOT / "tests").rglob("test_*.py") if "mark.alone" in file.read_text("utf-8")]
    assert [
        file for file in marked if not file.is_relative_to(ROOT / alone) and file.name != "test_servers.py"
    ] == []
    assert "\npytestmark = [pytest.mark.stack, " in (ROOT / ignored).read_text("utf-8")
