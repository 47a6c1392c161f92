"""Errors that an operator must act on: one sentence each, with the exit code of the `placet` command."""

from __future__ import annotations

from host.errors import EXIT_USAGE, OperatorError

# The signal's number is added, as in shells.
EXIT_SIGNALLED = 128


class OpsError(OperatorError):
    """A condition that the operator of the `placet` command has to resolve; it ends the command."""


class UsageError(OpsError):
    """The command cannot do this with the given options; the operator changes them."""

    exit_code = EXIT_USAGE


class PortTakenError(UsageError):
    """Another program uses the requested port."""


class DataDirectoryInUseError(UsageError):
    """Another stack is running on the data directory."""


class DataDirectoryUnusableError(UsageError):
    """A file or directory of the stack cannot be created or written."""


class TopicMismatchError(UsageError):
    """A topic exists with another partition count than requested."""


class DiskFullError(OpsError):
    """The file system of the data or cache directory has no space left."""


class JarError(OpsError):
    """A Kafka jar cannot be fetched, or does not match its pinned SHA-256."""


class JavaMissingError(OpsError):
    """No Java runtime that can run Kafka was found."""


class KafkaUnreachableError(OpsError):
    """No Kafka broker answers at the bootstrap servers."""


class KafkaFailedError(OpsError):
    """The embedded Kafka ended, or did not become ready in time."""


class TopicMissingError(OpsError):
    """A topic that the product reads or writes does not exist on the cluster."""


class LogCutError(OpsError):
    """The log ends before records that it is known to have held."""


class DatabaseUnreachableError(OpsError):
    """The database for the views does not answer."""


class RoleFailedError(OpsError):
    """A role did not become ready in time."""


class StoppedEarlyError(OpsError):
    """A signal ended the stack before it was ready."""

    def __init__(self, number: int) -> None:
        super().__init__("The stack was stopped before it was ready; none of its processes is left running.")
        self.exit_code = EXIT_SIGNALLED + number
