"""What is wrong with the log that a view was read from; each error says what the operator does."""

RESTORE = (
    "restore the log from a backup; only where it is meant as it is now, all its topics from one moment, rebuild the "
    "views with placet replay --force"
)
# Of views that have read nothing of a partition: none can be made.
RESTORE_WHOLE = "restore the log from a backup, since no view can be made of what is left"


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

    def __init__(self, where: str, what: str, advice: str = "") -> None:
        super().__init__(f"{where} {what}: {advice or RESTORE}.")
        self.where = where
        self.what = what
