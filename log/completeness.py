"""Checks that the log still has everything that was counted of it, since a decider would decide lost facts again.

A decider continues from what was decided according to the facts. If facts were cut off and their commands were not,
for example by a restore from an older backup, it would decide those commands again, differently. So before it claims
a partition it looks for independent evidence: `placet.trust` has the offset up to which each partition of the facts
was counted.

If the first facts of a partition were deleted, the rest proves nothing, because a claim counts only by the claim
before it. A snapshot would hide that. So each partition of facts has to begin at offset 0.

A decider would also decide again if the facts exist but no longer count, because the public half of the key that
signed them was lost, or because they were recorded unsigned. Therefore `placet.trust` also has the claim under which
it counted. The facts' own records are no evidence: anyone with write access there could claim under an unknown key.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing

from log.errors import ClaimUnknown, FactsDeleted, LogTruncated, PartitionsDiffer
from log.places import TopicPartition
from log.port import Log
from schemas.event_signatures import LogSignatures
from schemas.record import RawRecord, UnreadableRecord
from schemas.term import NO_CLAIM
from schemas.trust import TrustCheckpoint, read_trust

# A checkpoint closes every round of counting, so one of the last records is a checkpoint.
LOOK_BACK = 1_000


async def check_count(log: Log, topic: str, wanted: int) -> None:
    """Check that a topic has as many partitions as the installation was set up with.

    Raises:
        PartitionsDiffer: it has another count.
        TopicMissing: it does not exist.
        LogUnreachable: the log does not answer.
    """
    found = await log.partition_count(topic)
    if found != wanted:
        raise PartitionsDiffer(topic, found, wanted)


async def check_begun(log: Log, *topics: str) -> None:
    """Check that each partition of facts begins at offset 0.

    Args:
        log: a connected log.
        topics: the topics of facts to check.

    Raises:
        FactsDeleted: a partition begins later.
        LogError: the log cannot be read; see its subclasses.
    """
    for topic in topics:
        for partition in range(await log.partition_count(topic)):
            tp = TopicPartition(topic, partition)
            first, end = await log.bounds(tp)
            if first != 0:
                raise FactsDeleted(tp, first, end)


async def check_complete(log: Log, signatures: LogSignatures | None = None) -> Mapping[int, int]:
    """Compare each partition of the facts with the offset and the claim up to which it was counted.

    Args:
        log: a connected log.
        signatures: the log's; None if nothing was ever signed.

    Returns:
        Per partition, the claim that was counted last.

    Raises:
        FactsDeleted: a partition begins after offset 0.
        LogTruncated: a partition ends before the counted offset.
        ClaimUnknown: the counted claim would not count any more.
        LogError: the log cannot be read; see its subclasses.
    """
    await check_begun(log, *log.topics.facts)
    claims = {}
    topic_id = await log.topic_id(log.topics.executions)
    for partition in range(await log.partition_count(log.topics.trust)):
        counted = await _newest_checkpoint(log, TopicPartition(log.topics.trust, partition))
        if counted is None or (counted.partition, counted.topic_id) != (partition, topic_id):
            continue
        tp = TopicPartition(log.topics.executions, partition)
        first, end = await log.bounds(tp)
        if counted.through_offset >= end:
            raise LogTruncated(tp, counted.through_offset, first, end)
        await _check_claim(log, tp, counted.term, signatures)
        claims[partition] = counted.term
    return claims


async def _check_claim(log: Log, tp: TopicPartition, claim: int, signatures: LogSignatures | None) -> None:
    if signatures is None or claim == NO_CLAIM:
        return
    of_topic = signatures.of(tp.topic)
    async with aclosing(log.read(tp, claim, claim + 1)) as chunks:
        async for chunk in chunks:
            for raw in chunk:
                if doubt := of_topic.doubt(raw):
                    raise ClaimUnknown(tp, claim, doubt)


async def _newest_checkpoint(log: Log, tp: TopicPartition) -> TrustCheckpoint | None:
    first, end = await log.bounds(tp)
    back = LOOK_BACK
    while first < end:
        start = max(first, end - back)
        found = await _last_of(log, tp, start, end)
        if found is not None or start == first:
            return found
        back *= 2
    return None


async def _last_of(log: Log, tp: TopicPartition, start: int, end: int) -> TrustCheckpoint | None:
    last = None
    async with aclosing(log.read(tp, start, end)) as chunks:
        async for chunk in chunks:
            last = _checkpoint_in(chunk) or last
    return last


def _checkpoint_in(chunk: Sequence[RawRecord]) -> TrustCheckpoint | None:
    """The newest checkpoint of a chunk: it is among the last records, so most others need not be decoded."""
    for raw in reversed(chunk):
        try:
            record = read_trust(raw) if raw.value else None
        except UnreadableRecord:
            # Not reported here: the trust processor reports it.
            continue
        if isinstance(record, TrustCheckpoint):
            return record
    return None
