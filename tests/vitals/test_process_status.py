"""A heartbeat has ages that its readers accept, whatever the loop does meanwhile."""

import pytest

from vitals import process_status
from vitals.disks import Disk, Room, room_on
from vitals.heartbeat import READY
from vitals.process_status import ProcessStatus


def test_heartbeat_beside_a_loop_that_works_has_no_age_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    status = ProcessStatus("trust", "t", lambda: now)
    status.set_state(READY)
    status.progress(1, 5)

    def while_the_loop_works(disks: tuple[Disk, ...]) -> Room:
        nonlocal now
        now += 0.5
        status.progress(2, 5)
        status.acknowledged()
        return room_on(disks)

    monkeypatch.setattr(process_status, "room_on", while_the_loop_works)
    beat = status.heartbeat()
    assert (beat.stalled_ms, beat.loop_age_ms, beat.kafka_age_ms) == (0, 0, 0)
