"""Facts about the log itself: who writes a partition, and which definitions are in force on it."""

from schemas.message import Long, Message


class WriterClaimed(Message):
    """A worker asks for a partition by compare-and-set.

    It counts only if `after` is the offset of the claim in force where it lands (−1: none). The term is
    this record's own offset. `worker` is a name unique to the process.
    """

    claim_id: str
    after: Long
    worker: str


class WriterAlive(Message):
    """The writer is there, and every command up to `commands_through` is dealt with.

    `attempting` is set by a careful writer, after others died here: the offset of the command that it decides next,
    alone. If no trace of that command follows, the command may have ended this writer as well.
    """

    commands_through: Long
    attempting: Long = -1


class DefinitionsAdopted(Message):
    """From here on this partition judges by the definitions up to an offset.

    `versions` maps the newly adopted `{tenant}/{kind}/{name}` to their versions; if there are many, only the newest.
    """

    through_offset: Long
    through_record_id: str
    through_term: Long
    versions: dict[str, Long]


LOG_EVENTS: tuple[type[Message], ...] = (WriterClaimed, WriterAlive, DefinitionsAdopted)
