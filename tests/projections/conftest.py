"""One behaviour suite, both databases: `database_url` is a view of the test's own in each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from projections.store.urls import open_view
from tests.projections.filling import Filler


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a view that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'views.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return f"{url}?schema=v{uuid.uuid4().hex[:10]}"


@pytest.fixture
def filler(database_url: str) -> Iterator[Filler]:
    """A view that takes the records of a log made by hand."""
    store = open_view(database_url)
    yield Filler(store)
    store.close()
