"""What follows from who was heartbeats of: no process is blamed for a silent broker, nor a broker for a process."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from gateway.live.heartbeats import PROCESSES_MAX, LatestHeartbeats
from vitals.heartbeat import READY, STARTING, STOPPING, Heartbeat


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heartbeats(clock: Clock) -> LatestHeartbeats:
    return LatestHeartbeats(clock)


def heartbeat(
    role: str, state: str = READY, name: str = "", partitions: tuple[int, ...] = (0, 1)
) -> Heartbeat:
    return Heartbeat(role, name or role, "h", 1, state, partitions=partitions if role == "decider" else ())


def all_beat(heartbeats: LatestHeartbeats, *but: str) -> None:
    for role in ("decider", "projector", "gateway", "trust"):
        if role not in but:
            heartbeats.record(heartbeat(role))


def test_examine_where_all_beat_finds_nothing(heartbeats: LatestHeartbeats) -> None:
    all_beat(heartbeats)
    assert heartbeats.examine(2, 0.1) == ([], [])


def test_examine_blames_the_process_that_is_silent_while_others_are_heard(
    heartbeats: LatestHeartbeats, clock: Clock
) -> None:
    all_beat(heartbeats)
    for _ in range(4):
        clock.now += 1
        all_beat(heartbeats, "decider", "trust")
    problems, warnings = heartbeats.examine(2, 0.1)
    assert problems == ["no decider writes any partition", "decider on h has been silent for 4.0 s"]
    assert warnings == ["trust on h has been silent for 4.0 s"]


def test_examine_blames_nobody_for_a_broker_that_is_silent(
    heartbeats: LatestHeartbeats, clock: Clock
) -> None:
    heartbeats.record(heartbeat("decider"))
    clock.now += 0.9
    all_beat(heartbeats, "decider")
    clock.now += 3
    assert heartbeats.examine(2, 3.0) == ([], [])
    clock.now += 1
    assert heartbeats.examine(2, 4.0).problems == ["Kafka has not answered for 4.0 s"]


def test_examine_does_not_take_the_time_before_heartbeats_are_read_for_kafkas_silence(
    heartbeats: LatestHeartbeats, clock: Clock
) -> None:
    clock.now += 39
    assert heartbeats.examine(2, 0.1).problems == ["the heartbeats of the other processes are not read yet"]
    assert heartbeats.examine(2, 39.0).problems == ["Kafka has not answered for 39.0 s"]
    assert heartbeats.shown() == []
    heartbeats.begin()
    assert "no projector has sent a heartbeat" in heartbeats.examine(2, 0.1).problems
    clock.now += 3
    # Reading begins again after an interruption: what was silent then is silent still.
    heartbeats.begin()
    clock.now += 1
    assert heartbeats.examine(2, 0.1).problems == ["Kafka has not answered for 4.0 s"]


def test_examine_needs_a_decider_for_every_partition(heartbeats: LatestHeartbeats) -> None:
    all_beat(heartbeats)
    heartbeats.record(heartbeat("decider", partitions=(1,)))
    assert heartbeats.examine(3, 0.1).problems == ["no decider writes partitions 0, 2"]
    heartbeats.record(heartbeat("decider", name="second", partitions=(0, 2)))
    assert heartbeats.examine(3, 0.1).problems == []


def test_examine_forgets_who_said_that_it_stops(heartbeats: LatestHeartbeats) -> None:
    all_beat(heartbeats)
    heartbeats.record(heartbeat("projector", STOPPING))
    assert heartbeats.examine(2, 0.1).problems == ["no projector has sent a heartbeat"]


def test_take_keeps_no_more_processes_than_its_bound(heartbeats: LatestHeartbeats) -> None:
    for number in range(PROCESSES_MAX + 10):
        heartbeats.record(heartbeat("trust", name=f"t{number}"))
    assert len(heartbeats.processes()) == PROCESSES_MAX


def test_examine_names_the_error_that_ended_a_projector_until_it_is_back(
    heartbeats: LatestHeartbeats,
) -> None:
    all_beat(heartbeats)
    full = "the disk of the views is full: free space"
    heartbeats.record(
        replace(heartbeat("projector", STOPPING), reason="/secret/place cannot be written", disk=full)
    )
    assert heartbeats.examine(2, 0.1).problems == [f"projector on h: it ended by an error; {full}"]
    heartbeats.record(replace(heartbeat("projector", STARTING), reason=full, disk=full))
    assert heartbeats.examine(2, 0.1).problems == [f"projector on h: it is starting; {full}"]
    heartbeats.record(replace(heartbeat("projector"), reason=full, disk=full))
    assert heartbeats.examine(2, 0.1).problems == [f"projector on h: {full}"]
    heartbeats.record(heartbeat("projector"))
    assert heartbeats.examine(2, 0.1) == ([], [])


def test_examine_warns_of_a_clock_that_is_off_and_takes_the_process_to_work(
    heartbeats: LatestHeartbeats,
) -> None:
    all_beat(heartbeats)
    heartbeats.record(replace(heartbeat("gateway"), clock="its clock is 60.0 s behind Kafka's"))
    assert heartbeats.examine(2, 0.1) == ([], ["gateway on h: its clock is 60.0 s behind Kafka's"])


def test_examine_warns_once_of_a_disk_that_several_write_to(heartbeats: LatestHeartbeats) -> None:
    all_beat(heartbeats)
    for role in ("decider", "gateway"):
        heartbeats.record(replace(heartbeat(role), disk="the disk of the data directory is full: free space"))
    assert heartbeats.examine(2, 0.1) == ([], ["h: the disk of the data directory is full: free space"])


def test_decider_whose_claim_does_not_count_here_is_named(heartbeats: LatestHeartbeats) -> None:
    at_work = replace(heartbeat("decider"), terms=(10, 20))
    heartbeats.record(at_work)
    assert heartbeats.uncounted_deciders([11, 21], [10, 20]) == []
    (told,) = heartbeats.uncounted_deciders([11, 21], [10, 3])
    assert "decider on h writes partition 1 under a claim that does not count here (offset 20)" in told
    assert heartbeats.uncounted_deciders([11, 20], [10, 3]) == [], "what was not read here may count yet"
    assert heartbeats.uncounted_deciders([11, 31], [10, 30]) == [], "a newer claim is another decider's"
    heartbeats.record(replace(at_work, terms=()))
    assert heartbeats.uncounted_deciders([11, 21], [10, 3]) == [], "an earlier version does not say its terms"
