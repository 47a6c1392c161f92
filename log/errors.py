"""The errors of the log, with one base class; each kind says who has to act."""

from host.errors import EXIT_USAGE, OperatorError
from log.places import TopicPartition
from schemas.topics import begins_late

RESTORE = (
    "restore the log from a backup; only if it is intended as it is now, with all topics from one moment, rebuild "
    "the views with placet replay --force"
)


class LogError(OperatorError):
    """An error of the log; each kind says who has to act."""


class BatchTooLarge(LogError):
    """The records do not fit one batch; nothing was sent. The caller sends less.

    Attributes:
        tp: the target partition.
        size_bytes: an upper bound of their total size.
    """

    def __init__(self, tp: TopicPartition, size_bytes: int) -> None:
        super().__init__(
            f"{size_bytes} bytes do not fit into one batch on {tp}: send fewer or smaller records."
        )
        self.tp = tp
        self.size_bytes = size_bytes


class AppendFailed(LogError):
    """The outcome of an append is unknown: the batch may be in the log, may land later, or never.

    The appender cannot be used any more, for any partition. The caller abandons it, opens a new one and claims again.

    Attributes:
        tp: the target partition.
        reason: what happened, in a few words.
    """

    def __init__(self, tp: TopicPartition, reason: str) -> None:
        super().__init__(f"Whether the batch for {tp} was appended is unknown ({reason}).")
        self.tp = tp
        self.reason = reason


class LogUnreachable(LogError):
    """The log does not answer. The caller can try again; the operator starts Kafka or corrects the address.

    Attributes:
        address: the address that was tried.
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
    """Kafka answers but cannot do what was requested; `reason` says where. The operator checks its files."""

    def __init__(self, address: str, reason: str) -> None:
        LogError.__init__(self, reason)
        self.address, self.reason = address, reason


class LogDamaged(LogError):
    """The log contains a damaged record. The operator restores the log; no record may be skipped."""


class LogRefused(LogError):
    """The log refuses access: sign-in, rights or settings are wrong. The operator corrects them.

    Attributes:
        address: the log's address.
        reason: its answer, in a few words.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"The log at {address} refused ({reason}): correct the credentials, rights or settings."
        )
        self.address = address
        self.reason = reason


class TopicForbidden(LogRefused):
    """The cluster does not permit this principal to use a topic. The operator grants it the right."""


class TopicMissing(LogError):
    """A topic, or a partition of it, does not exist. The operator restores it, or creates it with `placet up`.

    Attributes:
        topic: its name.
    """

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"The topic {topic} or one of its partitions does not exist: restore it if it was deleted; in a new "
            "installation, placet up creates it."
        )
        self.topic = topic


class MemberReplaced(LogError):
    """Another process joined the group under the same name and has the partitions. The operator ends one of the two.

    Attributes:
        group: the group.
        member: the name.
    """

    def __init__(self, group: str, member: str) -> None:
        super().__init__(
            f"Another process runs as {member} in {group} and took this one's place: stop one of the two, or give "
            "each its own worker id."
        )
        self.group = group
        self.member = member


class ClaimUnknown(LogError):
    """A claim that counted for others does not count here. The operator acts; nothing may be decided again.

    Attributes:
        tp, offset: the place of the claim.
    """

    def __init__(self, tp: TopicPartition, offset: int, doubt: str) -> None:
        super().__init__(
            f"The claim at {tp}@{offset} was accepted before, but it {doubt}: everything under it would be "
            "decided again. Restore keys/deciders.json and keys/signed-from.json from a host or backup that has all "
            "their lines; docs/identity.md says what to do if that is intended, or if an earlier version ran with "
            "log_signatures off."
        )
        self.tp = tp
        self.offset = offset


class LogTruncated(LogError):
    """A partition does not contain a requested offset. The operator restores the log; no record may be skipped.

    `placet.trust` and the snapshots are evidence of what is missing: without them everything after it would be
    decided again.

    Attributes:
        tp: the partition.
        wanted: the requested offset; the partition has `first` up to `end`, its high watermark.
    """

    def __init__(self, tp: TopicPartition, wanted: int, first: int, end: int) -> None:
        super().__init__(
            f"Offset {wanted} of {tp} was requested, but the log holds {first} up to {end}: it was truncated or "
            "recreated. Restore all its topics from a backup of one moment, and remove nothing: what is missing "
            "would be decided again (docs/operations.md, Backup and restore)."
        )
        self.tp = tp
        self.wanted = wanted
        self.first = first
        self.end = end


class LogChanged(LogError):
    """The log is not the one that was read before, or not all of it: shorter, cut off, or recreated.

    No record is skipped. The operator restores the log. If the present log is the intended one, the operator rebuilds
    what was read from the earlier one: a view is evidence of what was cut off.

    Attributes:
        where: the partition.
        what: what is wrong with it, in a few words that continue the partition's name.
    """

    def __init__(self, where: object, what: str, advice: str = RESTORE) -> None:
        super().__init__(f"{where} {what}: {advice}.")
        self.where = str(where)
        self.what = what


class OffsetGone(LogChanged):
    """A partition no longer contains the offset to read next, or does not contain it yet.

    Attributes:
        tp: the partition.
        offset: the requested offset.
    """

    def __init__(self, tp: TopicPartition, offset: int) -> None:
        super().__init__(tp, f"no longer holds offset {offset}, which is next")
        self.tp = tp
        self.offset = offset


class PartitionsDiffer(LogError):
    """A topic has another partition count than the installation; the message names the count to start with."""

    exit_code = EXIT_USAGE

    def __init__(self, topic: str, found: int, wanted: int) -> None:
        super().__init__(
            f"The topic {topic} has {found} partitions and {wanted} were asked for: the count is fixed for the life "
            f"of the log, so start with --partitions {found}."
        )


class LogFromNewerVersion(LogError):
    """This version cannot read a fact that all others depend on. The operator runs the version that wrote it.

    Attributes:
        where: partition and offset.
    """

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(
            f"{where} is a record of the log that this version cannot read ({detail}): run the version that wrote "
            "it, or a newer one."
        )
        self.where = where


class FactsDeleted(LogTruncated):
    """The first facts of a partition were deleted. The operator restores the log."""

    def __init__(self, tp: TopicPartition, first: int, end: int) -> None:
        LogError.__init__(self, begins_late(str(tp), first))
        self.tp, self.wanted, self.first, self.end = tp, 0, first, end
