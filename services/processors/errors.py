"""What stops a processor, beside the errors of the log: one sentence each, with the exit code."""

from log.errors import FactsDeleted, LogChanged, LogError, PartitionsDiffer

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


class SettingsRefused(TrustError):
    """The settings of the process cannot be used."""

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


def exit_code_of(error: TrustError | LogError) -> int:
    """The exit code that says who has to act: 2, settings or a log that must be mended; 3, Kafka."""
    if isinstance(error, TrustError):
        return error.exit_code
    return EXIT_USAGE if isinstance(error, LogChanged | FactsDeleted | PartitionsDiffer) else EXIT_UNREACHABLE
