"""What stops a processor, beside what stops any role."""

from host.errors import EXIT_FAILED, EXIT_USAGE, OperatorError
from log.errors import FactsDeleted, LogChanged

EXIT_STALLED = 4


class TrustError(OperatorError):
    """The processor cannot go on; the supervisor starts it again, and `str()` says what else is needed."""

    exit_code = EXIT_FAILED


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


def exit_code_of(error: OperatorError) -> int:
    """The exit code that says who has to act: 2, settings or a log that must be mended; 3, Kafka."""
    return EXIT_USAGE if isinstance(error, LogChanged | FactsDeleted) else error.exit_code
