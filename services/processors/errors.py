"""The errors that end a processor, in addition to those that end any role."""

from host.errors import EXIT_FAILED, EXIT_USAGE, OperatorError
from log.errors import FactsDeleted, LogChanged

EXIT_STALLED = 4


class TrustError(OperatorError):
    """The processor cannot continue; the supervisor restarts it, and `str()` says what else must be done."""

    exit_code = EXIT_FAILED


class PositionLost(TrustError):
    """Records were delivered from another offset than the requested one; a restart repairs this."""


class PartsNotWhole(TrustError):
    """The stored parts of a partition do not add up: its checkpoint is dropped, and everything is counted anew.

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
    """The notifier's outbox is held by another process, is damaged, or cannot be written to its disk."""


def exit_code_of(error: OperatorError) -> int:
    """The exit code that says what must be repaired: 2 for settings or the log; 3 for Kafka."""
    return EXIT_USAGE if isinstance(error, LogChanged | FactsDeleted) else error.exit_code
