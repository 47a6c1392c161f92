"""A PostgreSQL database that cannot keep texts is refused in one sentence, with nothing made in it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal

from gateway.vault.opening import open_database
from gateway.vault.store import VaultUnavailable
from projections.queries.views import open_views
from projections.store.port import DatabaseUnfit, ViewUnavailable
from projections.store.urls import exists, identity_of, new_generation, open_view
from tests.projections.filling import Filler
from tests.projections.story import story

pytestmark = pytest.mark.postgres


@pytest.fixture(params=["SQL_ASCII", "LATIN1"])
def unfit_url(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[str]:
    name = f"d{uuid.uuid4().hex[:10]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            SQL("CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0").format(
                Identifier(name), Literal(request.param)
            )
        )
        yield re.sub(r"/[^/]+$", f"/{name}", postgres_url)
        connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


def read_views(url: str) -> None:
    views = open_views(url)
    try:
        views.read_now(lambda moment: None)
    finally:
        views.close()


@pytest.mark.parametrize("opens", [open_view, exists, identity_of, new_generation, read_views])
def test_database_of_another_encoding_is_refused_before_anything_is_made(
    unfit_url: str, opens: Callable[[str], object]
) -> None:
    with pytest.raises(
        DatabaseUnfit, match=r"has the encoding \w+, and Placet needs UTF8: create another \(CREATE"
    ):
        opens(unfit_url)
    assert schemas(unfit_url) == []


def test_vault_in_a_database_of_another_encoding_is_refused_before_anything_is_made(
    unfit_url: str, tmp_path: Path
) -> None:
    with pytest.raises(VaultUnavailable, match="and Placet needs UTF8"):
        open_database(tmp_path, unfit_url)
    assert schemas(unfit_url) == []


def test_client_encoding_of_the_surroundings_does_not_turn_texts_to_bytes(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    url = f"{postgres_url}?schema=v{uuid.uuid4().hex[:10]}"
    filler = Filler(open_view(url))
    filler.fill(story())
    filler.store.close()
    open_view(url).close()
    views = open_views(url)
    rows, _ = views.read_now(
        lambda moment: moment.execute(f"SELECT tenant FROM {moment.dialect.prefix}holds", ())
    )
    views.close()
    assert {type(tenant) for (tenant,) in rows} == {str}
    open_database(tmp_path, url).close()


def test_role_that_may_not_make_a_schema_is_told_so(postgres_url: str) -> None:
    role = f"r{uuid.uuid4().hex[:10]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SQL("CREATE ROLE {} LOGIN").format(Identifier(role)))
        with pytest.raises(ViewUnavailable, match=r"cannot be created: permission denied for database"):
            open_view(postgres_url.replace("placet@", f"{role}@") + f"?schema={role}")
        connection.execute(SQL("DROP ROLE {}").format(Identifier(role)))


def schemas(url: str) -> list[str]:
    with psycopg.connect(url, client_encoding="UTF8") as connection:
        rows = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE NOT starts_with(nspname, 'pg_')"
            " AND nspname NOT IN ('public', 'information_schema')"
        ).fetchall()
    return [str(row[0]) for row in rows]
