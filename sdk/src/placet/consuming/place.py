"""A position in Kafka as a text: of each partition the last record that was read, and the claim in force after it.

The record's id is compared with that of the record at its offset when reading goes on there: in another log, it is
another one. The text is base64url of JSON, after a mark that no cursor of a gateway begins with.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import NamedTuple

from placet.errors import CheckpointRefused
from placet.log import NO_CLAIM

MARK = "kafka."
NOWHERE = -1


class Place(NamedTuple):
    """The last record that was read of a partition, and the claim in force after it."""

    offset: int = NOWHERE
    claim: int = NO_CLAIM
    record_id: str = ""


def place_text(topic: str, places: Mapping[int, Place]) -> str:
    """The cursor of a position."""
    rows = {str(number): list(place) for number, place in sorted(places.items()) if place.offset != NOWHERE}
    text = json.dumps({"topic": topic, "places": rows}, separators=(",", ":"))
    return MARK + base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def read_place(cursor: str, topic: str, partitions: set[int]) -> dict[int, Place]:
    """The position of each partition.

    Raises:
        CheckpointRefused: it is not a position of this topic.
    """
    if not cursor.startswith(MARK):
        said = "the position is of the other form (stream or Kafka): not one of a consumer that reads Kafka"
        raise CheckpointRefused("other_log", said)
    data = cursor.removeprefix(MARK)
    try:
        found = json.loads(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)))
        rows = {
            int(number): Place(int(at), int(claim), str(ce))
            for number, (at, claim, ce) in found["places"].items()
        }
        named = str(found["topic"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointRefused("unreadable", "the position cannot be read") from error
    if named != topic or not rows.keys() <= partitions:
        raise CheckpointRefused(
            "other_log", f"the position is of {named}, {len(rows)} partitions, not of {topic}"
        )
    return {number: rows.get(number, Place()) for number in partitions}
