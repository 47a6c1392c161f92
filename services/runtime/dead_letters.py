"""Dead letters: commands that cannot be read or verified are stored with the reason, and the partition continues."""

import hashlib
import logging

from log.errors import BatchTooLarge
from log.places import TopicPartition
from log.port import Log
from schemas.dead_letters import letter_headers
from schemas.record import Headers, OutRecord
from services.runtime.rounds import DeadLetter

# The original's headers are kept, but limited: a dead letter must fit into the log as its original did.
HEADERS_KEPT = 32
KEY_KEPT = 1024
# A bearer token can be used by every reader, and dead letters are kept longer than commands.
TOKEN = "placet_token"  # noqa: S105 - a header's name

logger = logging.getLogger(__name__)


def dead_letter_record(letter: DeadLetter, tp: TopicPartition) -> OutRecord:
    """The record of a dead letter: the original's bytes, with its place and the reason in the headers.

    Its id is (topic, partition, offset) of the original, so that writing it again adds nothing.
    """
    raw = letter.raw
    headers: Headers = (
        *letter_headers(tp.topic, tp.partition, raw.offset, raw.timestamp_ms, letter.reason, letter.detail),
        *((f"original_{name}", _kept(name, value)) for name, value in raw.headers[:HEADERS_KEPT]),
    )
    return OutRecord(raw.key, raw.value, headers)


async def send_dead_letters(log: Log, commands_tp: TopicPartition, letters: list[DeadLetter]) -> None:
    """Write the letters and wait until they are in the log, before their commands count as processed.

    Raises:
        LogError: they could not be written; the round must not continue.
    """
    partitions = await log.partition_count(log.topics.dead_letters)
    target = TopicPartition(log.topics.dead_letters, commands_tp.partition % partitions)
    for letter in letters:
        record = dead_letter_record(letter, commands_tp)
        try:
            await log.send(target, record)
        except BatchTooLarge:
            await log.send(target, _without_content(letter, record))
    _alert(commands_tp, letters)


def _kept(name: str, value: bytes) -> bytes:
    return b"sha256:" + hashlib.sha256(value).hexdigest().encode() if name == TOKEN else value


def _without_content(letter: DeadLetter, record: OutRecord) -> OutRecord:
    """For a record too large to keep with its reason: the original stays in its topic for seven days."""
    ours = tuple((name, value) for name, value in record.headers if not name.startswith("original_"))
    sha256 = hashlib.sha256(letter.raw.value).hexdigest().encode()
    return OutRecord(record.key[:KEY_KEPT], b"", (*ours, ("placet_left_out_sha256", sha256)))


def _alert(commands_tp: TopicPartition, letters: list[DeadLetter]) -> None:
    """Log one line for each round: a sender writes to this topic without permission, or in the wrong form."""
    first = letters[0]
    logger.warning(
        "%s: %d dead letters, the first of offset %d (%s: %.200s)",
        commands_tp,
        len(letters),
        first.raw.offset,
        first.reason,
        first.detail,
    )
