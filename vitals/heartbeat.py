"""A heartbeat: the status that a process reports every second, in its status file and in the log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from vitals.status_file import STALLED

STARTING, READY, STOPPING = "starting", "ready", "stopping"
# A state that others assign to a process: its heartbeats have stopped, or report something that prevents its work.
SILENT = "silent"

HEARTBEAT_INTERVAL_S = 1.0
# A process without a heartbeat for this long is treated as frozen, dead or cut off. Case 39 requires this within 5 s.
SILENT_AFTER_S = 3.5
# A role that is behind for this long without any progress no longer counts as ready.
STALLED_AFTER_S = 10.0
# A process counts as hung only after this, since a long recovery or transaction also keeps a loop busy.
HUNG_AFTER_S = 60.0
# Anyone who can write to the topic can write a heartbeat, and each gateway keeps many.
TEXT_MAX = 4_000
PARTITIONS_MAX = 10_000

# With a constraint, pydantic refuses lone surrogates, which no answer can contain.
Text = Annotated[str, Field(strict=True, max_length=TEXT_MAX)]
# Exact as a float, too, in which metrics are reported.
Count = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Counts = Annotated[tuple[Count, ...], Field(max_length=PARTITIONS_MAX)]


class HeartbeatUnreadable(ValueError):
    """Bytes that are not a heartbeat."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The heartbeat of one process.

    Attributes:
        role: The name of its role.
        name: Its worker id, the role's name by default.
        host: The machine's name.
        pid: Its process id there.
        state: starting, ready or stopping.
        address: The address at which it serves (gateway, grpc); for other roles, the probe's.
        probe: The probe's address; None for the gateway, which serves the probes itself.
        at: The time of the heartbeat, RFC 3339.
        lag_records: The number of records still to read; None if unknown.
        stalled_ms: How long it has been behind without progress.
        loop_age_ms: The time since its own work last gave a sign of life.
        kafka_age_ms: The time since Kafka last acknowledged a heartbeat; None before the first.
        partitions: The partitions of the executions that a decider writes.
        terms: The claim under which it writes each of them, in their order.
        reason: What prevents its work although it runs and is connected; of a process that stops, the error that
            ended it.
        disk: Which of its disks are full or nearly full.
        clock: The difference of its machine's clock from Kafka's, if it is too large but prevents nothing else.
    """

    role: Text
    name: Text
    host: Text
    pid: Count
    state: Text
    address: Text | None = None
    at: Text = ""
    lag_records: Count | None = None
    stalled_ms: Count = 0
    loop_age_ms: Count = 0
    kafka_age_ms: Count | None = None
    partitions: Counts = ()
    terms: Counts = ()
    reason: Text = ""
    disk: Text = ""
    clock: Text = ""
    probe: Text | None = None

    @property
    def key(self) -> str:
        """The identity of the process, the same after a restart."""
        return f"{self.role}/{self.name}@{self.host}"

    def problems(self) -> list[str]:
        """What prevents the process from working, according to its heartbeat; empty if nothing does."""
        found = []
        if self.state != READY:
            found.append(f"it is {self.state}")
        if self.reason:
            found.append(self.reason)
        if self.loop_age_ms > SILENT_AFTER_S * 1000:
            found.append(f"its work has been stuck for {self.loop_age_ms / 1000:.1f} s")
        if self.kafka_age_ms is not None and self.kafka_age_ms > SILENT_AFTER_S * 1000:
            found.append(f"Kafka has not answered for {self.kafka_age_ms / 1000:.1f} s")
        if self.stalled_ms > STALLED_AFTER_S * 1000:
            found.append(
                f"it is {self.lag_records} records behind and has made no progress for {self.stalled_ms // 1000} s"
            )
        return found


def observed_state(heartbeat: Heartbeat, age_s: float) -> str:
    """The state of a process whose last heartbeat is `age_s` old."""
    if age_s > SILENT_AFTER_S and heartbeat.state != STOPPING:
        return SILENT
    return STALLED if heartbeat.state == READY and heartbeat.problems() else heartbeat.state


def encode(heartbeat: Heartbeat) -> bytes:
    """A heartbeat as a record's value: JSON."""
    return json.dumps(asdict(heartbeat)).encode()


def decode(value: bytes | None) -> Heartbeat:
    """A heartbeat from a record's value; fields of newer versions are ignored.

    Raises:
        HeartbeatUnreadable: the value is not a heartbeat.
    """
    try:
        return heartbeat_of(json.loads(value or b""))
    except (ValueError, RecursionError) as error:
        raise HeartbeatUnreadable(str(error)) from error


def heartbeat_of(read: Any) -> Heartbeat:
    """A heartbeat from its JSON; errors as in `decode`."""
    try:
        return _HEARTBEAT.validate_python(read)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise HeartbeatUnreadable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def text_of(said: str) -> str:
    """A text as a heartbeat can contain it: cut, and without lone surrogates, which no answer can contain."""
    return said.encode("utf-8", "replace").decode()[:TEXT_MAX]


_HEARTBEAT = TypeAdapter(Heartbeat)
