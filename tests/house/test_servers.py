"""Whoever takes a server says so: by the marks, runs without servers leave its test out."""

from __future__ import annotations

import pytest

from tests.conftest import SERVERS


def test_every_test_that_takes_a_server_has_its_mark(request: pytest.FixtureRequest) -> None:
    unmarked = [
        item.nodeid
        for item in request.session.items
        for fixture in SERVERS.keys() & set(getattr(item, "fixturenames", ()))
        if item.get_closest_marker(SERVERS[fixture]) is None
    ]
    assert unmarked == [], "\n".join(unmarked)
