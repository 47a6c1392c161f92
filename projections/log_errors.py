"""What is wrong with the log that a view was read from; each error says what the operator does."""


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

    Nothing is skipped. The operator restores the log, or rebuilds the view.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            f"{where} {what}: restore the log, or rebuild the views from what is there with placet replay --force."
        )
        self.where = where
        self.what = what
