"""Drops the records that the fold does not use before faust gets them.

Faust makes about forty objects for each message. Three of the five events of a call contain nothing that trust
counts, so they are dropped as soon as they are fetched:

1. a record is kept if the fold uses its type, if its type is unknown, or if it is the last of its fetch, so that the
   position advances;
2. each kept record stands for those dropped before it: `first_of` gives the first offset of its stretch. A stretch
   has no gap: offsets missing in the log end a stretch, and appear as a gap before the next one;
3. up to the offset that the partition's fold names, nothing is dropped: the fold checks there that the records are
   the ones it has counted.

A dropped record is not verified either: it changes no count, whether or not a decider signed it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# True if the fold does not need a record, by its value; the offset up to which it needs all, None if not loaded.
IsUnused = Callable[[bytes], bool]
WholeThrough = Callable[[int], int | None]


@dataclass(slots=True)
class RecordFilter:
    """Thins the records of one topic, and stores what each kept record stands for."""

    is_unused: IsUnused
    whole_through: WholeThrough
    _firsts: dict[tuple[int, int], int] = field(default_factory=dict)

    def drop_unused(self, partition: int, records: Sequence[Any]) -> list[Any]:
        """The records that are kept.

        Args:
            partition: the partition of the topic.
            records: `aiokafka.ConsumerRecord`s of one fetch, in offset order.
        """
        whole_through = self.whole_through(partition)
        if whole_through is None or not records:
            return list(records)
        kept = []
        first, last = records[0].offset, records[-1]
        for record, following in zip(records, [*records[1:], None], strict=True):
            offset = record.offset
            if (
                record is not last
                and offset > whole_through
                and record.value
                and self.is_unused(record.value)
                and following is not None
                and following.offset == offset + 1
            ):
                continue
            if first != offset:
                self._firsts[partition, offset] = first
            kept.append(record)
            first = following.offset if following is not None else offset + 1
        return kept

    def first_of(self, partition: int, offset: int) -> int:
        """The first offset of the stretch that ends with a kept record; its own if nothing was dropped."""
        return self._firsts.pop((partition, offset), offset)

    def forget(self) -> None:
        """Begin anew: everything that was fetched before is fetched again."""
        self._firsts.clear()
