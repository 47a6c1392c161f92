"""What the log could not do, in one family; each kind says who has to act."""

from host.errors import EXIT_USAGE, OperatorError
from log.places import TopicPartition
from schemas.topics import begins_late

RESTORE = (
    "restore the log from a backup; only where it is meant as it is now, all its topics from one moment, rebuild the "
    "views with placet replay --force"
)


class LogError(OperatorError):
    """What a log could not do; each kind says who has to act."""


class BatchTooLarge(LogError):
    """The records do not fit one batch; nothing was sent. The caller sends less.

    Attributes:
        tp: where they should have gone.
        size_bytes: an upper bound of their size together.
    """

    def __init__(self, tp: TopicPartition, size_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes do not fit one batch on {tp}: send fewer or smaller records.")
        self.tp = tp
        self.size_bytes = size_bytes


class AppendFailed(LogError):
    """The outcome of an append is unknown: the batch may be in the log, may land later, or never.

    The appender is spoiled for every partition. The caller abandons it, takes a fresh one and claims again.

    Attributes:
        tp: where the batch should have gone.
        reason: what happened, in a few words.
    """

    def __init__(self, tp: TopicPartition, reason: str) -> None:
        super().__init__(f"Whether the batch for {tp} was appended is unknown ({reason}).")
        self.tp = tp
        self.reason = reason


class LogUnreachable(LogError):
    """Nobody answers for the log. The caller may try again; the operator starts Kafka or mends the address.

    Attributes:
        address: where it was looked for.
        reason: what happened, in a few words.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"Kafka does not answer at {address} ({reason}): start it, or give the right address and security "
            "settings."
        )
        self.address = address
        self.reason = reason


class LogFailing(LogUnreachable):
    """Kafka answers but cannot do what was asked; `reason` says where. The operator looks at its files."""

    def __init__(self, address: str, reason: str) -> None:
        LogError.__init__(self, reason)
        self.address, self.reason = address, reason


class LogDamaged(LogError):
    """The log holds a record that is not as it was written. The operator restores it; nothing may be skipped."""


class LogRefused(LogError):
    """The log answers but does not let us: sign-in, rights or settings. The operator mends them.

    Attributes:
        address: where it was asked.
        reason: what it said, in a few words.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"The log at {address} refused ({reason}): mend credentials, rights or settings.")
        self.address = address
        self.reason = reason


class TopicForbidden(LogRefused):
    """The cluster does not let this principal use a topic. The operator grants it the right."""


class TopicMissing(LogError):
    """A topic, or a partition of it, does not exist. The operator restores it, or creates it with `placet up`.

    Attributes:
        topic: its name.
    """

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"The topic {topic} or one of its partitions does not exist: restore it if it was deleted; a new "
            "installation's is created by placet up."
        )
        self.topic = topic


class MemberReplaced(LogError):
    """Another process joined a group under this one's name and has its partitions. The operator ends one of the two.

    Attributes:
        group: the group.
        member: the name.
    """

    def __init__(self, group: str, member: str) -> None:
        super().__init__(
            f"Another process runs as {member} in {group} and took this one's place: end one of the two, or give "
            "each a worker id of its own."
        )
        self.group = group
        self.member = member


class ClaimUnknown(LogError):
    """A claim that others have counted does not count here. The operator acts; nothing may be decided anew.

    Attributes:
        tp, offset: where the claim stands.
    """

    def __init__(self, tp: TopicPartition, offset: int, doubt: str) -> None:
        super().__init__(
            f"The claim at {tp}@{offset} was counted before, but it {doubt}: everything under it would be "
            "decided anew. Restore keys/deciders.json and keys/signed-from.json from a host or backup that has all "
            "their lines; docs/identity.md says what to do where that is meant, or where an earlier version ran with "
            "log_signatures off."
        )
        self.tp = tp
        self.offset = offset


class LogTruncated(LogError):
    """A partition does not hold an offset that was asked for. The operator restores the log; nothing may be skipped.

    `placet.trust` and the snapshots name what is missing: without them all behind it would be decided anew.

    Attributes:
        tp: the partition.
        wanted: the offset that was asked for; it holds `first` up to `end`, its high watermark.
    """

    def __init__(self, tp: TopicPartition, wanted: int, first: int, end: int) -> None:
        super().__init__(
            f"Offset {wanted} of {tp} was asked for, but the log holds {first} up to {end}: it was truncated or "
            "recreated. Restore all its topics from a backup of one moment, and remove nothing: what is missing "
            "would be decided anew (docs/operations.md, Backup and restore)."
        )
        self.tp = tp
        self.wanted = wanted
        self.first = first
        self.end = end


class LogChanged(LogError):
    """The log is not the one that was read before, or not all of it: shorter, cut, or made anew.

    Nothing is skipped. The operator restores the log, or makes anew what was read from it where this log is the one
    that is meant: a view is a witness of what was cut off.

    Attributes:
        where: the partition.
        what: what is wrong with it, in a few words that go on from its name.
    """

    def __init__(self, where: object, what: str, advice: str = RESTORE) -> None:
        super().__init__(f"{where} {what}: {advice}.")
        self.where = str(where)
        self.what = what


class OffsetGone(LogChanged):
    """A partition no longer holds the offset that is read next, or does not hold it yet.

    Attributes:
        tp: the partition.
        offset: the one that was asked for.
    """

    def __init__(self, tp: TopicPartition, offset: int) -> None:
        super().__init__(tp, f"no longer holds offset {offset}, which is next")
        self.tp = tp
        self.offset = offset


class PartitionsDiffer(LogError):
    """A topic has another partition count than the installation; the message says which to start with."""

    exit_code = EXIT_USAGE

    def __init__(self, topic: str, found: int, wanted: int) -> None:
        super().__init__(
            f"The topic {topic} has {found} partitions and {wanted} were asked for: the count is fixed for the life "
            f"of the log, so start with --partitions {found}."
        )


class LogFromNewerVersion(LogError):
    """A fact that all others depend on cannot be read by this version. The operator runs the one that wrote it.

    Attributes:
        where: partition and offset.
    """

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(
            f"{where} is a fact of the log that this version cannot read ({detail}): run the version that wrote it, "
            "or a newer one."
        )
        self.where = where


class FactsDeleted(LogTruncated):
    """The first facts of a partition are gone. The operator restores the log."""

    def __init__(self, tp: TopicPartition, first: int, end: int) -> None:
        LogError.__init__(self, begins_late(str(tp), first))
        self.tp, self.wanted, self.first, self.end = tp, 0, first, end
