"""The data of the audit routes: heads from their files, leaves from the views, records from the log."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from gateway.kafka.records import RecordReader
from gateway.problems import Problem
from host.key_files import KeysUnreadable, load_public, raw_public
from log.errors import LogError, LogRefused, LogUnreachable, OffsetGone
from log.places import TopicPartition
from projections.audit.head_files import HeadFiles, HeadsUnusable
from projections.audit.trees import TreeKey
from projections.queries.proofs import Leaf
from schemas.audit import Head, TreeHead
from schemas.record import RawRecord
from schemas.refusals import Refusal
from schemas.topics import Topics

# A page ends when its first and last record are this many offsets apart.
SCAN_MOST = 20_000
PAGE_BYTES = 8 * 1024 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AuditReads:
    """Reads for one gateway; `head_seconds` is the longest time until the next head is signed."""

    files: HeadFiles
    keys_file: Path
    records: RecordReader
    topics: Topics
    head_seconds: float

    def newest(self, tenant: str) -> Head | None:
        """Return the newest head of a tenant.

        Raises:
            Problem: 503, the heads cannot be read.
        """
        return _readable(lambda: self.files.newest(tenant))

    def heads_after(self, tenant: str, number: int, limit: int) -> list[Head]:
        """Return the heads after a number; errors as `newest`."""
        return _readable(lambda: self.files.after(tenant, number, limit))

    def keys(self) -> dict[str, str]:
        """Return the public keys that sign heads, base64 by key id; errors as `newest`."""
        found = _readable(lambda: load_public(self.keys_file))
        return {kid: base64.b64encode(raw_public(key)).decode() for kid, key in found.items()}

    def not_covered(self) -> Problem:
        """Return the answer if no head covers a record yet."""
        wait_s = max(1, math.ceil(self.head_seconds))
        return Problem(
            Refusal.UNAVAILABLE,
            "no audit head covers this yet: try again when the next one is signed",
            retry_after=wait_s,
        )

    async def raw(self, tree: TreeKey, offsets: Sequence[int]) -> dict[int, RawRecord]:
        """Return the records of a tree at offsets.

        Raises:
            Problem: 503, the log does not answer, or no longer has one of them.
        """
        topic = self.topics.definitions if tree.topic == "definitions" else self.topics.executions
        try:
            return await self.records.read(TopicPartition(topic, tree.partition), offsets) if offsets else {}
        except (LogUnreachable, LogRefused) as error:
            # The error's own text is for operators: it contains the cluster's address.
            detail = "the record could not be read from Kafka: try again"
            raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1) from error
        except OffsetGone as error:
            detail = f"{error.tp} no longer contains offset {error.offset}"
            raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1) from error
        except LogError as error:
            raise Problem(Refusal.UNAVAILABLE, str(error), retry_after=1) from error


def tree_in(head: Head, tree: TreeKey) -> TreeHead | None:
    """Return a tree's entry in a head."""
    return next((one for one in head.trees if (one.topic, one.partition) == tree[1:]), None)


def record_json(tree: TreeKey, record: RawRecord) -> dict[str, Any]:
    """A record in the form from which its leaf is made; bytes are base64."""
    return {
        "topic": tree.topic,
        "partition": record.partition,
        "offset": record.offset,
        "key": _base64(record.key),
        "headers": [[name, _base64(value)] for name, value in record.headers],
        "value": _base64(record.value),
    }


def within_reach(found: Sequence[Leaf]) -> list[Leaf]:
    """Return the leaves of a page whose records can be read in one pass."""
    return [leaf for leaf in found if leaf.offset - found[0].offset <= SCAN_MOST]


def cut_to_size(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a page up to its size in bytes, at least one."""
    size = 0
    for count, item in enumerate(items):
        size += len(item["record"]["value"]) if item["record"] else 0
        if size > PAGE_BYTES and count:
            return items[:count]
    return items


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _readable(read: Callable[[], T]) -> T:
    try:
        return read()
    except (HeadsUnusable, KeysUnreadable) as error:
        raise Problem(Refusal.UNAVAILABLE, "the audit heads cannot be read: ask the operator") from error
