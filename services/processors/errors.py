"""What stops a processor: one sentence each that says who has to act, with the exit code."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_STALLED = 4


class TrustError(Exception):
    """The processor cannot go on; the supervisor starts it again, and `str()` says what else is needed.

    Attributes:
        exit_code: The exit code of the process.
    """

    exit_code = EXIT_FAILED


class KafkaUnreachable(TrustError):
    """Nobody answers at the bootstrap servers, or a topic is not there."""

    exit_code = EXIT_UNREACHABLE


class LogFails(TrustError):
    """Kafka answers and fails by itself, or what it holds is damaged: an operator looks at its files and disk."""

    exit_code = EXIT_UNREACHABLE


class PartitionsDiffer(TrustError):
    """A topic has another partition count than the log."""

    exit_code = EXIT_USAGE


class SettingsRefused(TrustError):
    """The settings of the process cannot be used."""

    exit_code = EXIT_USAGE


class LogChanged(TrustError):
    """The log is shorter than what was counted, or another one: nothing is skipped, an operator acts."""

    exit_code = EXIT_USAGE


class PositionLost(TrustError):
    """Records were delivered from another offset than the one that was asked for; a fresh start mends it."""


class PartsNotWhole(TrustError):
    """The stored parts of a partition do not add up: its checkpoint is dropped, and all is counted anew.

    Attributes:
        partition: The source partition.
    """

    def __init__(self, partition: int, found: int, wanted: int) -> None:
        super().__init__(
            f"The trust parts of partition {partition} hold {found} facts instead of {wanted}: a late writer "
            "overwrote one, so the partition is counted again from its first record."
        )
        self.partition = partition


class OutboxUnusable(TrustError):
    """The notifier's outbox is held by another process, damaged, or on a disk that takes no more."""
