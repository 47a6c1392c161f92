"""What a container's health check says of a role, asked of a real probe."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from host.errors import AddressTaken
from ops.probe import ask, main
from vitals.heartbeat import READY, SILENT, Heartbeat, decode, encode, observed_state
from vitals.metrics import role_registry
from vitals.probe import Probe
from vitals.process_status import ProcessStatus
from vitals.status_file import STALLED


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def status(clock: Clock) -> ProcessStatus:
    return ProcessStatus("decider", "decider-2", clock)


@pytest.fixture
def probe(status: ProcessStatus) -> Iterator[Probe]:
    found = Probe(status, role_registry(status))
    found.start()
    yield found
    found.stop()


def problems(probe: Probe) -> list[str]:
    status, said = ask(f"{probe.address}/readyz")
    found: list[str] = json.loads(said)["problems"]
    assert status == (503 if found else 200)
    return found


def test_probe_of_a_role_that_starts_works_or_stands_still(
    probe: Probe, status: ProcessStatus, clock: Clock
) -> None:
    assert problems(probe) == ["it is starting"]
    assert main([f"{probe.address}/readyz"]) == 1
    assert main([f"{probe.address}/healthz"]) == 0
    status.set_state(READY)
    status.acknowledged()
    assert problems(probe) == []
    assert main([f"{probe.address}/readyz"]) == 0
    clock.now += 4
    status.acknowledged()
    assert problems(probe) == ["its work has been stuck for 4.0 s"]
    clock.now += 4
    status.touch()
    assert problems(probe) == ["Kafka has not answered for 4.0 s"]
    assert main([f"{probe.address}/healthz"]) == 0
    clock.now += 61
    assert main([f"{probe.address}/healthz"]) == 1


def test_probe_of_a_role_that_is_behind_is_ready_as_long_as_it_moves(
    probe: Probe, status: ProcessStatus, clock: Clock
) -> None:
    status.set_state(READY)
    for position in range(20):
        clock.now += 1
        status.progress(position, 500)
    assert problems(probe) == []
    for _ in range(11):
        clock.now += 1
        status.progress(19, 500)
    assert problems(probe) == ["it is 500 records behind and has made no progress for 11 s"]
    status.progress(19, 0)
    assert problems(probe) == []


def test_probe_tells_prometheus_and_knows_no_other_page(probe: Probe, status: ProcessStatus) -> None:
    status.progress(7, 3)
    with urllib.request.urlopen(f"{probe.address}/metrics", timeout=5) as answer:
        families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
    (lag,) = families["placet_role_lag_records"].samples
    assert (lag.labels, lag.value) == ({"role": "decider", "name": "decider-2"}, 3.0)
    for request in (f"{probe.address}/v1/holds", urllib.request.Request(probe.address, b"x", method="POST")):
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=5)


def test_probe_on_a_taken_port_says_what_to_do(probe: Probe, status: ProcessStatus) -> None:
    port = int(probe.address.rpartition(":")[2])
    with pytest.raises(AddressTaken, match="give another with --probe-port"):
        Probe(status, role_registry(status), port=port)


def test_probe_that_nobody_answers_is_not_well() -> None:
    assert main(["http://127.0.0.1:1/readyz"]) == 1
    assert main([]) == 1


def test_heartbeat_comes_back_as_it_was_and_an_old_one_is_silence() -> None:
    heartbeat = Heartbeat(
        "decider", "d", "h", 7, READY, None, "2030-01-01T00:00:00.000Z", 3, partitions=(0, 2)
    )
    assert decode(encode(heartbeat)) == heartbeat
    assert (observed_state(heartbeat, 3.0), observed_state(heartbeat, 4.0)) == (READY, SILENT)
    assert observed_state(replace(heartbeat, kafka_age_ms=4_000), 0.0) == STALLED


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b"null", b"\xff", b"{" * 5000, b'{"role": 1}', None])
def test_heartbeat_that_is_none_is_refused(value: bytes | None) -> None:
    from vitals.heartbeat import HeartbeatUnreadable

    with pytest.raises(HeartbeatUnreadable):
        decode(value)


def test_heartbeat_with_a_wrong_type_is_refused() -> None:
    from vitals.heartbeat import HeartbeatUnreadable

    whole = json.loads(encode(Heartbeat("decider", "d", "h", 7, READY)))
    for name, wrong in (
        ("pid", "7"),
        ("pid", True),
        ("partitions", [None]),
        ("role", None),
        ("lag_records", 1.5),
        ("name", "a\ud800"),
        ("reason", "x" * 4_001),
        ("address", 5),
        ("stalled_ms", 10**400),
        ("partitions", [-1]),
        ("partitions", [0] * 10_001),
    ):
        with pytest.raises(HeartbeatUnreadable):
            decode(json.dumps(whole | {name: wrong}).encode())


def test_heartbeat_of_a_process_with_an_error_that_no_answer_can_contain_is_readable(
    status: ProcessStatus,
) -> None:
    status.reason = "no such file: /data/\udcff" + "x" * 10_000
    assert decode(encode(status.heartbeat())).reason.startswith("no such file: /data/?xxx")
