"""What Kafka's log directory holds, by the names in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.kafka.log_files import METADATA, has_metadata, has_partitions, set_aside


@pytest.mark.parametrize("topic", ["placet.executions", "__acme.executions", "_x-y"])
def test_partitions_are_seen_whatever_prefix_their_topics_have(tmp_path: Path, topic: str) -> None:
    (tmp_path / f"{topic}-0").mkdir()
    stray = tmp_path / f"{topic}-1.aBc_d-stray"
    stray.mkdir()
    (stray / "00000000000000000000.log").write_bytes(b"x")

    assert has_partitions(tmp_path)
    assert set_aside(tmp_path) == [f"{topic}-1.aBc_d-stray"]


@pytest.mark.parametrize("topic", ["__cluster_metadata", "__consumer_offsets", "__transaction_state"])
def test_kafkas_own_topics_are_no_partitions_of_a_log(tmp_path: Path, topic: str) -> None:
    (tmp_path / f"{topic}-0").mkdir()
    stray = tmp_path / f"{topic}-1.aBc_d-stray"
    stray.mkdir()
    (stray / "00000000000000000000.log").write_bytes(b"x")

    assert not has_partitions(tmp_path)
    assert set_aside(tmp_path) == []


def test_partition_set_aside_without_a_record_is_not_told(tmp_path: Path) -> None:
    for number, files in enumerate(
        [[], ["00000000000000000000.log"], ["00000000000000000000.log", "00000000000000000042.log"]]
    ):
        stray = tmp_path / f"placet.executions-{number}.aBc_d-stray"
        stray.mkdir()
        for name in ("partition.metadata", "00000000000000000000.timeindex"):
            (stray / name).write_bytes(b"x")
        for name in files:
            (stray / name).touch()

    # Of the last, records were there and have been deleted: its next record has another offset than in an empty one.
    assert set_aside(tmp_path) == ["placet.executions-2.aBc_d-stray"]


def test_snapshot_that_is_gone_when_it_is_looked_at_is_no_metadata(tmp_path: Path) -> None:
    metadata = tmp_path / METADATA
    metadata.mkdir()
    (metadata / "00000000000000000042-0000000001.checkpoint").symlink_to(tmp_path / "gone")

    assert not has_metadata(tmp_path)

    (metadata / "00000000000000000000.log").write_bytes(b"x")
    assert has_metadata(tmp_path)
