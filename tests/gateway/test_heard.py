"""What follows from who was heard of: no process is blamed for a silent broker, nor a broker for a process."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from gateway.live.heard import HEARD_MAX, Heard
from vitals.word import READY, STARTING, STOPPING, Word


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heard(clock: Clock) -> Heard:
    return Heard(clock)


def word(role: str, state: str = READY, name: str = "", partitions: tuple[int, ...] = (0, 1)) -> Word:
    return Word(role, name or role, "h", 1, state, partitions=partitions if role == "decider" else ())


def all_beat(heard: Heard, *but: str) -> None:
    for role in ("decider", "projector", "gateway", "trust"):
        if role not in but:
            heard.take(word(role))


def test_examine_where_all_beat_finds_nothing(heard: Heard) -> None:
    all_beat(heard)
    assert heard.examine(2, 0.1) == ([], [])


def test_examine_blames_the_process_that_is_silent_while_others_are_heard(heard: Heard, clock: Clock) -> None:
    all_beat(heard)
    for _ in range(4):
        clock.now += 1
        all_beat(heard, "decider", "trust")
    problems, warnings = heard.examine(2, 0.1)
    assert problems == ["no decider writes any partition", "decider on h has been silent for 4.0 s"]
    assert warnings == ["trust on h has been silent for 4.0 s"]


def test_examine_blames_nobody_for_a_broker_that_is_silent(heard: Heard, clock: Clock) -> None:
    heard.take(word("decider"))
    clock.now += 0.9
    all_beat(heard, "decider")
    clock.now += 3
    assert heard.examine(2, 3.0) == ([], [])
    clock.now += 1
    assert heard.examine(2, 4.0).problems == ["Kafka has not answered for 4.0 s"]


def test_examine_needs_a_decider_for_every_partition(heard: Heard) -> None:
    all_beat(heard)
    heard.take(word("decider", partitions=(1,)))
    assert heard.examine(3, 0.1).problems == ["no decider writes partitions 0, 2"]
    heard.take(word("decider", name="second", partitions=(0, 2)))
    assert heard.examine(3, 0.1).problems == []


def test_examine_forgets_who_said_that_it_stops(heard: Heard) -> None:
    all_beat(heard)
    heard.take(word("projector", STOPPING))
    assert heard.examine(2, 0.1).problems == ["no projector has sent a heartbeat"]


def test_take_keeps_no_more_processes_than_its_bound(heard: Heard) -> None:
    for number in range(HEARD_MAX + 10):
        heard.take(word("trust", name=f"t{number}"))
    assert len(heard.parts()) == HEARD_MAX


def test_examine_names_the_error_that_ended_a_projector_until_it_is_back(heard: Heard) -> None:
    all_beat(heard)
    full = "the disk of the views is full: free space"
    heard.take(replace(word("projector", STOPPING), reason="/secret/place cannot be written", disk=full))
    assert heard.examine(2, 0.1).problems == [f"projector on h: it ended by an error; {full}"]
    heard.take(replace(word("projector", STARTING), reason=full, disk=full))
    assert heard.examine(2, 0.1).problems == [f"projector on h: it is starting; {full}"]
    heard.take(replace(word("projector"), reason=full, disk=full))
    assert heard.examine(2, 0.1).problems == [f"projector on h: {full}"]
    heard.take(word("projector"))
    assert heard.examine(2, 0.1) == ([], [])


def test_examine_warns_of_a_clock_that_is_off_and_takes_the_process_to_work(heard: Heard) -> None:
    all_beat(heard)
    heard.take(replace(word("gateway"), clock="its clock is 60.0 s behind Kafka's"))
    assert heard.examine(2, 0.1) == ([], ["gateway on h: its clock is 60.0 s behind Kafka's"])


def test_examine_warns_once_of_a_disk_that_several_write_to(heard: Heard) -> None:
    all_beat(heard)
    for role in ("decider", "gateway"):
        heard.take(replace(word(role), disk="the disk of the data directory is full: free space"))
    assert heard.examine(2, 0.1) == ([], ["h: the disk of the data directory is full: free space"])


def test_decider_whose_claim_does_not_count_here_is_named(heard: Heard) -> None:
    at_work = replace(word("decider"), terms=(10, 20))
    heard.take(at_work)
    assert heard.strangers([11, 21], [10, 20]) == []
    (told,) = heard.strangers([11, 21], [10, 3])
    assert "decider on h writes partition 1 under a claim that does not count here (offset 20)" in told
    assert heard.strangers([11, 20], [10, 3]) == [], "what was not read here may count yet"
    assert heard.strangers([11, 31], [10, 30]) == [], "a newer claim is another decider's"
    heard.take(replace(at_work, terms=()))
    assert heard.strangers([11, 21], [10, 3]) == [], "an earlier version does not say its terms"
