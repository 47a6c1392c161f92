"""Leaves records out of what faust is handed, where the fold has no use for them.

Faust makes some forty objects for each message. Three of the five events of a call say nothing that trust counts, so
they are left out as soon as they are fetched:

1. a record is kept if the fold follows its type, if it is unknown what it is, or if it is the last of its fetch, so
   that the position moves on;
2. each kept record stands for those left out before it: `first_of` names the first offset of its stretch. A stretch
   has no gap: what is missing in the log ends one, and shows as a gap before the next one;
3. up to the offset that the partition's fold names, nothing is left out: it looks there for the very records that it
   has counted.

A record that is left out is not verified either. It changes no count whether or not a decider signed it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# Whether the fold does without a record, by its value; how far it wants every record, None where it is not loaded.
IsUnused = Callable[[bytes], bool]
WholeThrough = Callable[[int], int | None]


@dataclass(slots=True)
class Thinning:
    """Thins the records of one topic, and remembers what each kept one stands for."""

    is_unused: IsUnused
    whole_through: WholeThrough
    _firsts: dict[tuple[int, int], int] = field(default_factory=dict)

    def thin(self, partition: int, records: Sequence[Any]) -> list[Any]:
        """The records that are kept.

        Args:
            partition: of the topic.
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
        """The first offset of the stretch that ends with a kept record; its own where nothing was left out."""
        return self._firsts.pop((partition, offset), offset)

    def forget(self) -> None:
        """Begin anew: whatever was fetched before is fetched again."""
        self._firsts.clear()
