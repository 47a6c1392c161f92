"""`placet export --star` on a real Kafka: beside the events, and how it ends where there are no views."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ops.config import DataDir, load_config, save_config
from tests.ops.export.logs import asked, table
from tests.ops.export.starred import view_of
from tests.ops.export.test_command import a_stack, answer, fill, run
from tests.projections.season import people, season


def with_views(data: Path) -> str:
    """The stack's configuration with views of its own; their URL."""
    url = f"sqlite:///{data}/views.sqlite"
    save_config(replace(load_config(DataDir(data).config), database_url=url))
    return url


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_star_is_written_beside_the_events(kafka: str, topic_prefix: str, tmp_path: Path, form: str) -> None:
    data, log = a_stack(kafka, topic_prefix, tmp_path / "data"), season(20, partitions=1)
    fill(kafka, topic_prefix, log)
    view_of(with_views(data), log, people())
    found = answer(run(data, tmp_path / "out", "--star", "--format", form, "--json"))
    assert (found["star"]["tool_calls"], found["star"]["executions"]) == (20, 20)
    star = f"'{tmp_path / 'out'}/star/tool_calls.{form}'"
    events = f"{table(tmp_path / 'out')} e"
    joined = f"{star} JOIN {events} USING (execution_id, call_id)"
    assert asked(f"SELECT count(*) FROM {joined} WHERE type = 'ToolCallProposed' AND e.revision = 1") == [
        (20,)
    ]
    told = run(data, tmp_path / "out", "--star")
    assert told.exit_code == 0
    assert f"tables in {tmp_path / 'out' / 'star'}" in told.output
    assert answer(run(data, tmp_path / "out", "--json"))["star"] == {}


def test_stack_without_views_has_its_events_exported_and_is_told(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    data, log = a_stack(kafka, topic_prefix, tmp_path / "data"), season(5, partitions=1)
    fill(kafka, topic_prefix, log)
    with_views(data)
    done = run(data, tmp_path / "out", "--star")
    assert done.exit_code == 3
    assert "There is no view" in done.stderr
    assert asked(f"SELECT count(DISTINCT execution_id) FROM {table(tmp_path / 'out')}") == [(5,)]
