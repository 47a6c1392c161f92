"""What analysts have made on the views outlives their rebuilding, or the rebuilding says what it would cost."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from projections.store.comments import is_json, is_moment
from projections.store.facade import data_schema
from projections.store.generation import Generation
from projections.store.port import Batch, ViewHeld
from projections.store.postgres_address import split_url
from projections.store.tables import TABLES
from projections.store.urls import identity_of, new_generation, open_view
from projections.tables.executions import EXECUTIONS

pytestmark = pytest.mark.postgres


@dataclass(frozen=True)
class Analyst:
    """A role that may read the views, and its own schema."""

    url: str
    schema: str
    role: str
    password: str

    @property
    def plain(self) -> str:
        return split_url(self.url)[0]

    def as_owner(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.plain, autocommit=True) as connection:
            connection.execute(SQL(statement).format(*map(Identifier, names)))

    def run(self, statement: str, *names: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.plain, autocommit=True) as connection:
            connection.execute(SQL("SET ROLE {}").format(Identifier(self.role)))
            done = connection.execute(SQL(statement).format(*map(Identifier, names)))
            return done.fetchall() if done.description else []

    def read_only(self) -> None:
        self.as_owner("GRANT USAGE ON SCHEMA {} TO {}", self.schema, self.role)
        self.as_owner("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}", self.schema, self.role)

    def own_view(self) -> None:
        self.run(
            "CREATE VIEW {}.running AS SELECT agent, count(*) AS runs FROM {}.executions GROUP BY agent",
            self.role,
            self.schema,
        )


@pytest.fixture
def analyst(postgres_url: str) -> Analyst:
    schema, role = f"v{uuid.uuid4().hex[:10]}", f"ana_{uuid.uuid4().hex[:8]}"
    found = Analyst(f"{postgres_url}?schema={schema}", schema, role, "")
    open_view(found.url).close()
    found.as_owner("CREATE ROLE {} LOGIN", role)
    found.as_owner("CREATE SCHEMA {} AUTHORIZATION {}", role, role)
    return found


def rebuilt(url: str, *agents: str) -> Generation:
    """A view beside the live one, with an execution of each agent."""
    generation = new_generation(url)
    rows = []
    for number, agent in enumerate(agents):
        known: dict[str, Any] = {
            column.name: 0 if column.type == "int" else "" for column in EXECUTIONS.columns
        }
        rows.append(tuple((known | {"execution_id": f"run-{number}", "agent": agent}).values()))
    generation.store.apply(Batch([], upserts={EXECUTIONS.name: rows}))
    generation.store.close()
    return generation


def test_swap_keeps_grants_and_the_views_that_analysts_made(analyst: Analyst) -> None:
    analyst.read_only()
    analyst.own_view()
    assert analyst.run("SELECT * FROM {}.running", analyst.role) == []
    for agents in (("bot",), ("bot", "bot", "other")):
        generation = rebuilt(analyst.url, *agents)
        generation.check()
        generation.swap(identity_of(analyst.url), False)
        assert dict(analyst.run("SELECT * FROM {}.running", analyst.role)) == {
            agent: agents.count(agent) for agent in agents
        }
        assert len(analyst.run("SELECT * FROM {}.executions", analyst.schema)) == len(agents)


def test_analysts_read_the_views_and_neither_write_them_nor_reach_the_tables(analyst: Analyst) -> None:
    analyst.read_only()
    for table in TABLES:
        assert analyst.run("SELECT * FROM {}.{}", analyst.schema, table.name) == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst.run("DELETE FROM {}.executions", analyst.schema)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst.run("SELECT * FROM {}.executions", data_schema(analyst.schema))


def test_swap_that_would_take_what_hangs_on_the_tables_lists_it_and_changes_nothing(analyst: Analyst) -> None:
    behind = data_schema(analyst.schema)
    analyst.as_owner("GRANT USAGE ON SCHEMA {} TO {}", behind, analyst.role)
    analyst.as_owner("GRANT SELECT ON {}.executions TO {}", behind, analyst.role)
    analyst.run("CREATE VIEW {}.direct AS SELECT agent FROM {}.executions", analyst.role, behind)
    analyst.as_owner("CREATE TABLE {}.notes (text TEXT)", behind)
    before = identity_of(analyst.url)
    generation = rebuilt(analyst.url, "bot")
    for refused in (generation.check, lambda: generation.swap(before, False)):
        with pytest.raises(ViewHeld, match="--force") as told:
            refused()
        said = str(told.value)
        assert f"{analyst.role}.direct depends on" in said
        assert f"{behind}.notes is in" in said
        assert f"{analyst.role} has rights on" in said
    assert identity_of(analyst.url) == before
    assert analyst.run("SELECT * FROM {}.direct", analyst.role) == []
    generation.swap(before, True)
    assert identity_of(analyst.url) != before


def test_swap_to_tables_without_a_column_that_somebody_reads_is_refused(analyst: Analyst) -> None:
    analyst.read_only()
    analyst.own_view()
    generation = rebuilt(analyst.url, "bot")
    fresh = _newest(analyst)
    analyst.as_owner("ALTER TABLE {}.executions RENAME COLUMN agent TO agent_name", fresh)
    before = identity_of(analyst.url)
    with pytest.raises(ViewHeld, match=f"{analyst.role}.running depends on {analyst.schema}.executions"):
        generation.swap(before, False)
    assert identity_of(analyst.url) == before
    generation.discard()


def test_swap_to_a_view_without_a_column_names_who_has_rights_on_it_and_is_done_by_force(
    analyst: Analyst,
) -> None:
    """As for the view `trust` of the versions in which it had a bound."""
    analyst.as_owner("DROP VIEW {}.trust", analyst.schema)
    text = "CREATE VIEW {}.trust AS SELECT *, 0.5::float8 AS lower_bound FROM {}.trust"
    analyst.as_owner(text, analyst.schema, data_schema(analyst.schema))
    analyst.read_only()
    generation = rebuilt(analyst.url, "bot")
    before = identity_of(analyst.url)
    with pytest.raises(
        ViewHeld, match=f"{analyst.role} has rights on {analyst.schema}.trust, in which columns were"
    ):
        generation.swap(before, False)
    generation.swap(before, True)
    analyst.read_only()
    assert analyst.run("SELECT share FROM {}.trust", analyst.schema) == []
    with pytest.raises(psycopg.errors.UndefinedColumn):
        analyst.run("SELECT lower_bound FROM {}.trust", analyst.schema)


def test_swap_to_tables_with_a_column_more_shows_it_last(analyst: Analyst) -> None:
    analyst.read_only()
    analyst.own_view()
    generation = rebuilt(analyst.url, "bot")
    analyst.as_owner("ALTER TABLE {}.executions ADD COLUMN mood TEXT", _newest(analyst))
    generation.swap(identity_of(analyst.url), False)
    (row,) = analyst.run("SELECT * FROM {}.executions", analyst.schema)
    typed = [name for name in EXECUTIONS.names if is_moment(name) or is_json("executions", name)]
    assert (len(row), row[-1]) == (len(EXECUTIONS.columns) + len(typed) + 1, None)
    assert analyst.run("SELECT * FROM {}.running", analyst.role) == [("bot", 1)]


def test_swap_behind_a_query_that_does_not_end_gives_up(
    analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projections.store.facade.LOCK_TIMEOUT", "200ms")
    generation = rebuilt(analyst.url, "bot")
    before = identity_of(analyst.url)
    with psycopg.connect(analyst.plain) as reading:
        reading.execute(SQL("SELECT * FROM {}.executions").format(Identifier(analyst.schema)))
        with pytest.raises(ViewHeld, match="wait until it ends"):
            generation.swap(before, False)
    assert identity_of(analyst.url) == before
    generation.swap(before, False)


def test_tables_of_an_earlier_version_are_moved_and_stay_readable_where_they_were(analyst: Analyst) -> None:
    behind = data_schema(analyst.schema)
    generation = rebuilt(analyst.url, "bot")
    generation.swap(identity_of(analyst.url), False)
    analyst.as_owner("DROP SCHEMA {} CASCADE", analyst.schema)
    analyst.as_owner("ALTER SCHEMA {} RENAME TO {}", behind, analyst.schema)
    analyst.read_only()
    analyst.own_view()
    open_view(analyst.url).close()
    assert analyst.run("SELECT agent FROM {}.executions", analyst.schema) == [("bot",)]
    assert analyst.run("SELECT * FROM {}.running", analyst.role) == [("bot", 1)]
    again = rebuilt(analyst.url, "bot")
    with pytest.raises(ViewHeld, match=rf"{analyst.role}.running depends on tables of {behind}"):
        again.swap(identity_of(analyst.url), False)
    again.discard()


def _newest(analyst: Analyst) -> str:
    statement = "SELECT nspname FROM pg_namespace WHERE nspname LIKE %s"
    with psycopg.connect(analyst.plain) as connection:
        rows = connection.execute(statement, (f"{data_schema(analyst.schema)}\\_%",)).fetchall()
    (found,) = rows
    return str(found[0])
