"""What an operator must act on: one sentence each, with the exit code of the `placet` command."""

from __future__ import annotations

from host.errors import EXIT_USAGE, OperatorError

# And the signal's number, as in shells.
EXIT_SIGNALLED = 128


class OpsError(OperatorError):
    """A condition that the operator of the `placet` command has to resolve; it ends the command."""


class UsageError(OpsError):
    """What was asked for cannot be done this way; ask differently."""

    exit_code = EXIT_USAGE


class PortTakenError(UsageError):
    """A port that was asked for is held by another program."""


class DataDirectoryInUseError(UsageError):
    """Another stack is running on the data directory."""


class DataDirectoryUnusableError(UsageError):
    """A file or directory of the stack cannot be made or written."""


class TopicMismatchError(UsageError):
    """A topic exists with another partition count than the one asked for."""


class DiskFullError(OpsError):
    """The file system of the data or cache directory has no room left."""


class JarError(OpsError):
    """A Kafka jar cannot be fetched, or is not the one pinned by its SHA-256."""


class JavaMissingError(OpsError):
    """No Java runtime that can run Kafka was found."""


class KafkaUnreachableError(OpsError):
    """No Kafka broker answers at the bootstrap servers."""


class KafkaFailedError(OpsError):
    """The embedded Kafka ended, or did not become ready in time."""


class TopicMissingError(OpsError):
    """A topic that the product reads or writes does not exist on the cluster."""


class LogCutError(OpsError):
    """The log ends before what is known to have been in it."""


class DatabaseUnreachableError(OpsError):
    """The database for the views does not answer."""


class RoleFailedError(OpsError):
    """A role did not become ready in time."""


class StoppedEarlyError(OpsError):
    """A signal ended the stack before it was ready."""

    def __init__(self, number: int) -> None:
        super().__init__("The stack was stopped before it was ready; nothing of it is left running.")
        self.exit_code = EXIT_SIGNALLED + number
