"""The store's promises, on both databases: each record counts once, at the position that is stored with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from multiprocessing import Queue, get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from projections.audit.trees import Trees
from projections.batching import Batcher, Chunk
from projections.cache import RowCache
from projections.queries.views import open_views
from projections.store import sqlite, statements
from projections.store.port import (
    Batch,
    Move,
    Position,
    PositionConflict,
    ViewError,
    ViewOutdated,
    ViewUnavailable,
)
from projections.store.postgres_address import split_url
from projections.store.sqlite_alone import alone_in
from projections.store.statements import Dialect
from projections.store.urls import UnknownDatabase, check_sound, exists, is_sqlite, open_view, sqlite_path
from projections.tables.agents import AGENTS
from projections.tables.calls import TOOL_CALLS
from projections.tables.definitions import DEFINITIONS
from projections.tables.events import EVENTS
from projections.tables.executions import EXECUTIONS
from projections.tables.holds import HOLDS
from tests.projections.filling import TOPICS, Filler
from tests.projections.histories import LogBuilder, held_cycle, key_of, many_runs, started


def _two_runs() -> LogBuilder:
    return many_runs(LogBuilder(4).claim_all(), 2)


def test_apply_whole_log_makes_a_row_for_each_thing(filler: Filler) -> None:
    builder = many_runs(LogBuilder(4).claim_all(), 20)
    filler.fill(builder)
    assert len(filler.rows(EXECUTIONS)) == 20
    assert len(filler.rows(EVENTS)) == sum(map(len, builder.records)) - 4
    assert {row["state"] for row in filler.rows(EXECUTIONS)} == {"completed"}


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_apply_in_steps_of_any_size_makes_the_same_view(
    filler: Filler, step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = many_runs(LogBuilder(2).claim_all(), 6)
    filler.fill(builder, step=step)
    other = Filler(open_view(f"sqlite:///{tmp_path_factory.mktemp('other')}/v.db"))
    other.fill(builder, step=7)
    assert filler.everything() == other.everything()
    other.store.close()


def test_apply_by_a_second_projector_is_refused_and_writes_nothing(filler: Filler, database_url: str) -> None:
    builder = _two_runs()
    second = Filler(open_view(database_url))
    at = Position(TOPICS.executions, 0, "t1")
    stale = Batcher(TOPICS, RowCache(second.store), Trees(second.store)).batch(
        [Chunk(at, builder.records[0])]
    )
    filler.fill(builder)
    before = filler.everything()
    with pytest.raises(PositionConflict):
        second.store.apply(stale)
    moved_on = replace(at, next_offset=1, claim=0, record_id="r")
    with pytest.raises(PositionConflict):
        second.store.apply(Batch([Move(moved_on, replace(at, next_offset=99))]))
    assert filler.everything() == before
    second.store.close()


def test_positions_after_apply_hold_claim_record_and_topic(filler: Filler) -> None:
    builder = _two_runs()
    filler.fill(builder)
    stored = {at.partition: at for at in filler.store.positions()}
    for partition, records in enumerate(builder.records):
        last = dict(records[-1].headers)["ce_id"].decode()
        expected = Position(TOPICS.executions, partition, "t1", len(records), builder.term[partition], last)
        assert stored[partition] == expected


def test_tracking_row_stands_where_the_position_stands(filler: Filler) -> None:
    filler.fill(_two_runs())
    for at in filler.store.positions():
        assert filler.store.tracked(at) == at.next_offset


def test_reopened_view_goes_on_in_the_middle_of_the_log_with_the_stored_claim(
    filler: Filler, database_url: str
) -> None:
    builder = LogBuilder(1).claim_all()
    key = key_of("run-1")
    builder.append(key, [started()])
    cycle = list(held_cycle(key, "c1", 5.0))
    builder.append(key, cycle[0])
    filler.fill(builder)
    for bodies in cycle[1:]:
        builder.append(key, bodies)
    again = Filler(open_view(database_url))
    again.fill(builder)
    assert [row["status"] for row in again.rows(TOOL_CALLS)] == ["succeeded"]
    assert [row["status"] for row in again.rows(HOLDS)] == ["resolved"]
    again.store.close()


def test_counters_are_added_up_over_batches(filler: Filler) -> None:
    builder = many_runs(LogBuilder(4).claim_all(), 12)
    filler.fill(builder, step=2)
    counted = {(row["agent"], row["tool"]): row["proposed"] for row in filler.rows(AGENTS)}
    calls = filler.rows(TOOL_CALLS)
    for (agent, tool), proposed in counted.items():
        assert proposed == sum(row["agent"] == agent and row["tool"] == tool for row in calls)


def test_load_of_missing_rows_leaves_them_out(filler: Filler) -> None:
    filler.fill(_two_runs())
    found = filler.store.load(EXECUTIONS, [("acme", "main", "run-0"), ("acme", "main", "nobody")])
    assert [row["execution_id"] for row in found] == ["run-0"]


def test_failed_apply_leaves_rows_and_position_as_they_were(filler: Filler) -> None:
    builder = _two_runs()
    filler.fill(builder)
    before, at = filler.everything(), filler.store.positions()
    position = at[0]
    event = filler.rows(EVENTS)[0]
    twice = Batch(
        [Move(position, replace(position, next_offset=position.next_offset + 1))],
        inserts={EVENTS.name: [tuple(event.values())]},
    )
    with pytest.raises(PositionConflict):
        filler.store.apply(twice)
    assert filler.everything() == before
    assert filler.store.positions() == at


def test_open_view_of_another_layout_is_refused(
    filler: Filler, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler.fill(_two_runs())
    monkeypatch.setattr("projections.store.layout.create_statements", lambda dialect: ["another layout"])
    with pytest.raises(ViewOutdated, match="placet replay"):
        open_view(database_url)


@pytest.mark.parametrize(
    ("now", "earlier", "view", "column", "had_it"),
    [
        ("published_at_ms, project ", "published_at_ms ", "tools", "project", False),
        (" AS share ", " AS share, 0.5 AS lower_bound ", "trust", "lower_bound", True),
    ],
    ids=["had_no_project", "had_a_bound"],
)
def test_open_view_of_a_version_with_other_sql_views_is_refused(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    now: str,
    earlier: str,
    view: str,
    column: str,
    had_it: bool,
) -> None:
    """Making its SQL views, as every opening does, must not fail on those that are there.

    One that has lost a column cannot be replaced in PostgreSQL: the version is told before that.
    """

    def of_before(dialect: Dialect) -> list[str]:
        return [text.replace(now, earlier) for text in made(dialect)]

    made = statements._create_views
    with monkeypatch.context() as before:
        before.setattr(statements, "_create_views", of_before)
        open_view(database_url).close()
        assert (column in _columns(database_url, view)) is had_it
    with pytest.raises(ViewOutdated, match="placet replay"):
        open_view(database_url)


def test_open_view_of_a_version_without_an_indexed_column_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "views.sqlite"
    with closing(sqlite3.connect(file)) as earlier, earlier:
        earlier.execute("CREATE TABLE placet_layout (layout TEXT)")
        earlier.execute("INSERT INTO placet_layout VALUES ('of an earlier version')")
        earlier.execute(f"CREATE TABLE {TOOL_CALLS.name} (tenant TEXT)")
    with pytest.raises(ViewOutdated, match="placet replay"):
        open_view(f"sqlite:///{file}")


def test_tools_and_policies_are_each_projects_own(filler: Filler, database_url: str) -> None:
    rows = [
        ("tool", "*", "pay", 1),
        ("tool", "*", "pay", 2),
        ("tool", "main", "pay", 1),
        ("tool", "other", "pay", 3),
        ("policy", "*", "limits", 1),
        ("policy", "main", "limits", 1),
    ]
    empty = {column.name: 0 if column.type == "int" else "" for column in DEFINITIONS.columns}
    given = [
        empty | {"tenant": "acme", "kind": kind, "project": project, "name": name, "version": version}
        for kind, project, name, version in rows
    ]
    filler.store.apply(Batch([], upserts={DEFINITIONS.name: [tuple(row.values()) for row in given]}))
    asked = "SELECT project, name, version FROM {} ORDER BY project, version"
    assert _ask(database_url, asked, "tools") == [("*", "pay", 2), ("main", "pay", 1), ("other", "pay", 3)]
    assert _ask(database_url, asked, "policies") == [("*", "limits", 1), ("main", "limits", 1)]


def _columns(url: str, view: str) -> list[str]:
    with _connected(url) as (connection, place):
        return [one[0] for one in connection.execute(f"SELECT * FROM {place}{view}").description]


def _ask(url: str, text: str, view: str) -> list[tuple[Any, ...]]:
    with _connected(url) as (connection, place):
        return list(connection.execute(text.format(f"{place}{view}")).fetchall())


@contextmanager
def _connected(url: str) -> Iterator[tuple[Any, str]]:
    """A connection to a view's database, and what stands before the names in it."""
    if is_sqlite(url):
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            yield connection, ""
        return
    plain, schema = split_url(url)
    with psycopg.connect(plain) as connection:
        yield connection, f'"{schema}".'


def test_sqlite_path_may_hold_any_character(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a 100% odd?#name.db"
    filler, views = Filler(open_view(url)), open_views(url)
    filler.fill(_two_runs())
    assert views.read_now(lambda moment: moment.one(EXECUTIONS, execution_id="run-0"))[0] is not None
    views.close()
    filler.store.close()


def _open_with_others(url: str, together: Barrier, found: Queue[str]) -> None:
    together.wait(30)
    try:
        with closing(open_view(url)) as store:
            found.put(f"{store.positions()}")
    except ViewError as error:
        found.put(str(error))


def _opened_by_several(url: str, count: int) -> list[str]:
    fork = get_context("fork")
    together, found = fork.Barrier(count), fork.Queue()
    others = [fork.Process(target=_open_with_others, args=(url, together, found)) for _ in range(count)]
    for other in others:
        other.start()
    answers = [found.get(timeout=60) for _ in others]
    for other in others:
        other.join(30)
    return answers


def test_processes_that_open_a_new_view_at_once_open_the_same(tmp_path: Path) -> None:
    count = 3
    for number in range(5):
        assert _opened_by_several(f"sqlite:///{tmp_path}/{number}/v.db", count) == ["[]"] * count
        assert len(list((tmp_path / str(number)).glob("v.db.????????????"))) == 1


def test_processes_that_open_a_new_view_on_postgresql_at_once_open_the_same(postgres_url: str) -> None:
    count = 3
    for _ in range(5):
        schema = f"v{uuid4().hex[:10]}"
        assert _opened_by_several(f"{postgres_url}?schema={schema}", count) == ["[]"] * count
        with psycopg.connect(postgres_url) as connection:
            layouts = connection.execute(f"SELECT count(*) FROM {schema}_data.placet_layout").fetchone()
        assert layouts == (1,)


def test_view_whose_directory_another_process_holds_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_TIMEOUT_S", 0.1)
    with alone_in(tmp_path, 1), pytest.raises(ViewUnavailable, match="another process has been opening"):
        open_view(f"sqlite:///{tmp_path}/v.db")
    open_view(f"sqlite:///{tmp_path}/v.db").close()


@pytest.mark.parametrize("is_link", [False, True])
async def test_directory_in_the_place_of_a_view_is_told_with_what_to_do(
    tmp_path: Path, is_link: bool
) -> None:
    (tmp_path / "there").mkdir()
    path = tmp_path / "views.db" if is_link else tmp_path / "there"
    if is_link:
        path.symlink_to("there")
    url, views = f"sqlite:///{path}", open_views(f"sqlite:///{path}")
    advice = rf"{path} is a directory, .*: move it away, or set another path in DATABASE_URL"
    for look in (open_view, check_sound, exists):
        with pytest.raises(ViewUnavailable, match=advice):
            look(url)
    with pytest.raises(ViewUnavailable, match=advice):
        await views.read(lambda moment: moment.positions())
    views.close()


def test_file_in_the_place_of_the_directory_of_a_view_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert not exists(f"sqlite:///{tmp_path}/data/views.db")
    with pytest.raises(ViewUnavailable, match=f"A view cannot be created in {tmp_path}/data"):
        open_view(f"sqlite:///{tmp_path}/data/views.db")


def test_unknown_kind_of_database_is_refused_by_name() -> None:
    with pytest.raises(UnknownDatabase, match="mysql"):
        open_view("mysql://nowhere/views")


def test_what_is_no_url_of_a_database_is_refused_without_quoting_it() -> None:
    with pytest.raises(UnknownDatabase) as refused:
        open_view("s3cr3t@db/placet")
    assert "s3cr3t" not in str(refused.value)


def test_database_that_does_not_answer_is_said_so() -> None:
    with pytest.raises(ViewUnavailable, match="does not answer"):
        open_view("postgresql://placet@127.0.0.1:9/views?connect_timeout=2")
