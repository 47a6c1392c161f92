"""What is wrong with the log that a view was read from; each error says what the operator does."""

from schemas.topics import begins_late

RESTORE = (
    "restore the log from a backup; only where it is meant as it is now, all its topics from one moment, rebuild the "
    "views with placet replay --force"
)


class LogError(Exception):
    """The log cannot be read on; `str()` is one sentence saying what to do."""


class LogUnreachable(LogError):
    """Nobody answers for the log, or it does not let us in. The operator starts it or mends the settings."""


class LogDamaged(LogError):
    """The log holds a record that is not as it was written. The operator restores it; nothing is skipped."""


class TopicMissing(LogError):
    """A topic does not exist. The operator creates it."""


class LogChanged(LogError):
    """The log is not the one that the view was read from, or not all of it: shorter, cut, or made anew.

    Nothing is skipped. The operator restores the log, or rebuilds the view where this log is the one that is meant:
    the view is a witness of what was cut off.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}: {RESTORE}.")
        self.where = where
        self.what = what


class FactsDeleted(LogError):
    """The first facts of a partition are gone. The operator restores the log: no view can be made of what is left."""

    def __init__(self, where: str, first: int) -> None:
        super().__init__(begins_late(where, first))
        self.where = where
