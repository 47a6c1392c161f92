"""Dead letters: what cannot be read or believed is kept with its reason, and the partition goes on."""

import hashlib
import logging

from log.errors import BatchTooLarge
from log.places import TopicPartition
from log.port import Log
from schemas.dead_letters import letter_headers
from schemas.record import Headers, OutRecord
from services.runtime.rounds import DeadLetter

# Foreign headers are kept, but not without limit: a dead letter must fit where its original did.
HEADERS_KEPT = 32
KEY_KEPT = 1024
# A bearer token is good for whoever reads it, and letters are kept longer than commands.
TOKEN = "placet_token"  # noqa: S105 - a header's name

logger = logging.getLogger(__name__)


def dead_letter_record(letter: DeadLetter, tp: TopicPartition) -> OutRecord:
    """The record of a dead letter: the original's bytes, and where and why in the headers.

    Its id is (topic, partition, offset) of the original, so that writing it again adds nothing.
    """
    raw = letter.raw
    headers: Headers = (
        *letter_headers(tp.topic, tp.partition, raw.offset, raw.timestamp_ms, letter.reason, letter.detail),
        *((f"original_{name}", _kept(name, value)) for name, value in raw.headers[:HEADERS_KEPT]),
    )
    return OutRecord(raw.key, raw.value, headers)


async def send_dead_letters(log: Log, commands_tp: TopicPartition, letters: list[DeadLetter]) -> None:
    """Write the letters and wait until they are in the log, before their commands count as dealt with.

    Raises:
        LogError: they could not be written; the round must not go on.
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
    """What would not fit beside its reason: the original stays where it is for the topic's seven days."""
    ours = tuple((name, value) for name, value in record.headers if not name.startswith("original_"))
    sha256 = hashlib.sha256(letter.raw.value).hexdigest().encode()
    return OutRecord(record.key[:KEY_KEPT], b"", (*ours, ("placet_left_out_sha256", sha256)))


def _alert(commands_tp: TopicPartition, letters: list[DeadLetter]) -> None:
    """One line a round: somebody writes to this topic who should not, or not so."""
    first = letters[0]
    logger.warning(
        "%s: %d dead letters, the first of offset %d (%s: %.200s)",
        commands_tp,
        len(letters),
        first.raw.offset,
        first.reason,
        first.detail,
    )
