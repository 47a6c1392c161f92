"""Whether the log still holds what was counted of it: one that was restored too short would be decided anew.

A decider goes on from what the facts say was decided. Where facts were cut off and the commands were not, it would
decide those again, differently. So before it claims anything it looks for a witness: `placet.trust` says of each
partition of the facts up to which offset it was counted.

Where the first facts of a partition were deleted, what is left tells nothing: a claim counts by the one before it.
A snapshot would hide that. So each partition of facts has to begin at offset 0.

It would do the same where the facts are there and count no more, since the public half of the key that signed them
was lost, or since they were recorded unsigned. The witness says, too, under which claim it counted. Records of the
facts themselves are no evidence: who may only produce there could claim under a key that nobody ever knew.
"""

from collections.abc import Mapping
from contextlib import aclosing

from log.errors import ClaimUnknown, FactsDeleted, LogTruncated, PartitionsDiffer
from log.places import TopicPartition
from log.port import Log
from schemas.record import UnreadableRecord
from schemas.seals import LogSeals
from schemas.term import NO_CLAIM
from schemas.trust import TrustCheckpoint, read_trust

# A checkpoint closes every round of counting: one of the last records is one.
LOOK_BACK = 1_000


async def check_count(log: Log, topic: str, wanted: int) -> None:
    """Check that a topic has as many partitions as the installation was set up with.

    Raises:
        PartitionsDiffer: it has another count.
        TopicMissing: it does not exist.
        LogUnreachable: nobody answers.
    """
    found = await log.partition_count(topic)
    if found != wanted:
        raise PartitionsDiffer(topic, found, wanted)


async def check_begun(log: Log, *topics: str) -> None:
    """Check that each partition of facts begins at offset 0.

    Args:
        log: connected.
        topics: those of facts that are looked at.

    Raises:
        FactsDeleted: one does not.
        LogError: the log cannot be read; see its kinds.
    """
    for topic in topics:
        for partition in range(await log.partition_count(topic)):
            tp = TopicPartition(topic, partition)
            first, end = await log.bounds(tp)
            if first != 0:
                raise FactsDeleted(tp, first, end)


async def check_whole(log: Log, seals: LogSeals | None = None) -> Mapping[int, int]:
    """Compare each partition of the facts with how far, and under which claim, it was counted.

    Args:
        log: connected.
        seals: of the log; None where nothing was ever signed.

    Returns:
        Per partition, the claim that was counted last.

    Raises:
        FactsDeleted: a partition begins behind offset 0.
        LogTruncated: a partition ends before.
        ClaimUnknown: that claim would not count any more.
        LogError: the log cannot be read; see its kinds.
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
        await _check_claim(log, tp, counted.term, seals)
        claims[partition] = counted.term
    return claims


async def _check_claim(log: Log, tp: TopicPartition, claim: int, seals: LogSeals | None) -> None:
    if seals is None or claim == NO_CLAIM:
        return
    of_topic = seals.of(tp.topic)
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
            for raw in filter(lambda raw: raw.value, chunk):
                try:
                    record = read_trust(raw)
                except UnreadableRecord:
                    # The trust processor reports it.
                    continue
                if isinstance(record, TrustCheckpoint):
                    last = record
    return last
