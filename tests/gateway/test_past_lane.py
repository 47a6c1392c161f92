"""A lane that is read again from inside a command: its earlier records are found, and no others are kept."""

from __future__ import annotations

from gateway.live.cursor import Vector, mark_of
from gateway.live.past import PastLane
from schemas.headers import read_meta
from tests.gateway.catching import Remembered
from tests.gateway.facts import LANES, Partition, key_of, new_live, proposed, started, verdict

KEY = key_of("run-1")
LANE = 1


def test_records_before_the_cursor_are_kept_only_while_they_can_be_of_its_command() -> None:
    live, _ = new_live()
    log, partition = Remembered(live), Partition(live)
    log.write(partition, KEY, "start", started())
    for number in range(100):
        log.write(partition, KEY, f"propose-{number}", proposed(f"c{number}"))
    log.write(partition, KEY, "last", proposed("c"), verdict("c"))
    raws = log.lanes[LANE]
    place = raws[-1]
    offsets, marks = [-1] * LANES, [0] * LANES
    offsets[LANE], marks[LANE] = place.offset, mark_of(read_meta(place).event_id)
    lane = PastLane(LANE, Vector(tuple(offsets), tuple(marks), LANE, 1), lambda key: True)
    lane.begin_at(0, len(raws))
    for raw in raws[lane.next_offset : -1]:
        lane.take(raw)
        assert len(lane._early) == 1
    assert lane.take(place) is None
    passed = lane.close()
    assert passed is not None
    assert passed.group is not None
    assert [fact.event.offset for fact in passed.group.facts] == [place.offset - 1, place.offset]
    assert passed.given == 1
