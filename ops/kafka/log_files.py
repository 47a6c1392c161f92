"""What is in Kafka's log directory, as the names there say: partitions, those set aside, and Kafka's metadata.

Kafka knows its topics from `__cluster_metadata-0` alone. Where that is lost it starts as an empty cluster, and
renames each partition to `TOPIC-N.ID-stray`, with every record in it.
"""

from __future__ import annotations

import re
from pathlib import Path

METADATA = "__cluster_metadata-0"
# Kafka's own topics; ours may have a prefix that begins with underscores, too.
_OURS = r"(?!__(?:cluster_metadata|consumer_offsets|transaction_state|share_group_state)-\d).+-\d+"
_PARTITION = re.compile(_OURS)
_SET_ASIDE = re.compile(_OURS + r"\.[^.]+-stray")
# Of an empty cluster: it is written when a directory is prepared.
_FIRST_SNAPSHOT = f"{0:020}-{0:010}.checkpoint"

# Of a partition whose first records are still there, or still to come.
_FIRST_SEGMENT = f"{0:020}.log"


def has_partitions(data: Path) -> bool:
    """Whether a log directory has a partition of a topic that is not Kafka's own."""
    return bool(_named(data, _PARTITION))


def set_aside(data: Path) -> list[str]:
    """The directories of such partitions with records that Kafka has set aside, as its metadata does not know them.

    One that never had a record holds nothing that could be lost.
    """
    return [name for name in _named(data, _SET_ASIDE) if _had_records(data / name)]


def has_metadata(data: Path) -> bool:
    """Whether Kafka's metadata has a record, or a snapshot of some."""
    return any(
        path.suffix in (".log", ".checkpoint") and path.name != _FIRST_SNAPSHOT and _size(path)
        for path in (data / METADATA).glob("*")
    )


def _had_records(partition: Path) -> bool:
    return any(path.name != _FIRST_SEGMENT or _size(path) for path in partition.glob("*.log"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        # Kafka removes old snapshots while it runs.
        return 0


def _named(data: Path, pattern: re.Pattern[str]) -> list[str]:
    return sorted(path.name for path in data.glob("*") if pattern.fullmatch(path.name) and path.is_dir())
