"""The topics of the log: their names, keys and clean-up, and the partition of a key."""

import struct
from dataclasses import dataclass
from functools import lru_cache

DEFINITION_COMMANDS = "definition-commands"
DEFINITIONS = "definitions"
DEFAULT_PARTITIONS = 12
HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * 60 * 60 * 1000
FOREVER_MS = -1

# The largest batch that a broker must accept: one command's events stay under the ceiling in schemas.limits.
MAX_MESSAGE_BYTES = 2 * 1024 * 1024


def begins_late(where: str, first: int) -> str:
    """The error text for a partition of facts that begins after offset 0: what is wrong and what to do.

    Args:
        where: the partition, as `topic/number`.
        first: its first offset.
    """
    return (
        f"{where} begins at offset {first}, but facts are kept for ever: those before it were deleted, by hand or by "
        "the topic's retention. Restore all topics from a backup of one moment, and check that this one has no "
        "retention (retention.ms and retention.bytes are -1). Remove nothing: views, audit heads and trust refer to "
        "what is missing (docs/operations.md, Backup and restore)."
    )


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic as it must exist on the broker.

    `partitions` is None if the installation's partition count applies. `segment_ms` is None if the broker's own
    setting applies; only whole segments are deleted.
    """

    name: str
    cleanup_policy: str
    retention_ms: int
    partitions: int | None = None
    log_append_time: bool = False
    segment_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Topics:
    """The topic names of one installation. A prefix lets several logs share a cluster."""

    prefix: str = "placet"

    @property
    def commands(self) -> str:
        """The commands, by aggregate."""
        return f"{self.prefix}.commands"

    @property
    def executions(self) -> str:
        """The facts, by aggregate: the source of truth."""
        return f"{self.prefix}.executions"

    @property
    def facts(self) -> tuple[str, str]:
        """The topics whose records are kept for ever and read from offset 0 on: each partition begins there."""
        return self.executions, self.definitions

    @property
    def definition_commands(self) -> str:
        """Commands on definitions, by tenant/kind/name."""
        return f"{self.prefix}.{DEFINITION_COMMANDS}"

    @property
    def definitions(self) -> str:
        """Published policies and tools, by version."""
        return f"{self.prefix}.{DEFINITIONS}"

    @property
    def snapshots(self) -> str:
        """Folded partitions, so that deciders start faster."""
        return f"{self.prefix}.snapshots"

    @property
    def trust(self) -> str:
        """Trust statistics with their evidence offsets."""
        return f"{self.prefix}.trust"

    @property
    def learning(self) -> str:
        """Patterns, improvements and proposals."""
        return f"{self.prefix}.learning"

    @property
    def dead_letters(self) -> str:
        """Records that cannot be read or trusted, with the reason."""
        return f"{self.prefix}.dead-letters"

    @property
    def heartbeats(self) -> str:
        """Every process's heartbeat of each second; no decision depends on it."""
        return f"{self.prefix}.heartbeats"

    def specs(self) -> tuple[TopicSpec, ...]:
        """Every topic with its broker settings (docs/log-contract.md, Topics)."""
        keep = FOREVER_MS
        return (
            TopicSpec(self.commands, "delete", 7 * DAY_MS, log_append_time=True),
            TopicSpec(self.executions, "delete", keep),
            TopicSpec(self.definition_commands, "delete", 7 * DAY_MS, partitions=1, log_append_time=True),
            TopicSpec(self.definitions, "delete", keep, partitions=1),
            TopicSpec(self.snapshots, "compact", keep),
            TopicSpec(self.trust, "compact", keep),
            TopicSpec(self.learning, "delete", keep),
            TopicSpec(self.dead_letters, "delete", 30 * DAY_MS),
            TopicSpec(self.heartbeats, "delete", HOUR_MS, partitions=1, segment_ms=HOUR_MS),
        )


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 hash of a key, as a signed 32-bit number made positive.

    Source: `org.apache.kafka.common.utils.Utils.murmur2` and `toPositive`.
    """
    mask = 0xFFFFFFFF
    length = len(data)
    h = (0x9747B28C ^ length) & mask
    for word in struct.unpack_from(f"<{length // 4}I", data):
        k = word * 0x5BD1E995 & mask
        k = (k ^ (k >> 24)) * 0x5BD1E995 & mask
        h = (h * 0x5BD1E995 & mask) ^ k
    tail = data[length - length % 4 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * 0x5BD1E995 & mask
    h = (h ^ (h >> 13)) * 0x5BD1E995 & mask
    return (h ^ (h >> 15)) & 0x7FFFFFFF


@lru_cache(maxsize=8192)
def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key: murmur2 modulo the count, the same for commands and events.

    This is the default partitioner of Kafka's Java client. librdkafka's default differs, so producers set the
    partition.
    """
    return murmur2(key) % partitions
