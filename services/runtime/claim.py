"""Claiming a partition by compare-and-set in the log, and reading it (docs/log-contract.md, the term rule)."""

import asyncio
from contextlib import aclosing

from log.errors import ClaimUnknown
from log.places import TopicPartition
from log.port import Appender, Log
from schemas.event_signatures import ANYWHERE, EventSigner
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.ids import LOG_KEYS, derived_id
from schemas.record import EventMeta
from schemas.term import NO_CLAIM
from services.runtime.ledger import Ledger

# About ten milliseconds of folding. Folding a whole partition at once exceeded the group's session timeout.
READ_TOGETHER = 64


async def read_up_to(log: Log, tp: TopicPartition, ledger: Ledger, stop: int) -> None:
    """Fold the partition from the ledger's position up to an offset.

    Raises:
        LogTruncated: the partition is shorter than what the ledger has read.
    """
    ledger.reading_to = stop
    async with aclosing(log.read(tp, ledger.next_offset, stop)) as chunks:
        async for chunk in chunks:
            for begin in range(0, len(chunk), READ_TOGETHER):
                await ledger.read_all(chunk[begin : begin + READ_TOGETHER])
                # Chunks that are already fetched arrive without a pause, and the group's heartbeat shares this loop.
                await asyncio.sleep(0)
    # Offsets may end in a gap (a compacted or control record): the next record still comes at `stop` or later.
    ledger.next_offset = max(ledger.next_offset, stop)


async def claim(
    log: Log,
    appender: Appender,
    tp: TopicPartition,
    ledger: Ledger,
    claim_id: str,
    worker_id: str,
    event_signer: EventSigner | None = None,
    counted: int = NO_CLAIM,
) -> bool:
    """Try once to become the partition's writer.

    1. Read to the high watermark, so that the ledger knows the claim in force.
    2. Append a claim after that one.
    3. Read back to the own claim.

    Args:
        log: the log of the partition.
        appender: a usable appender.
        tp: the events partition.
        ledger: folded up to some offset; afterwards, up to the claim.
        claim_id: fresh for every try.
        worker_id: named in the claim, for people.
        event_signer: signs it; None if nothing is signed.
        counted: a claim that others have counted; a process that does not count it must not claim.

    Returns:
        True if this claim is in force; False if another process's claim landed first.

    Raises:
        ClaimUnknown: the claim that others counted does not count here, so everything after it would be decided anew.
        AppendFailed: the outcome is unknown; claim again with a fresh appender.
    """
    _, end = await log.bounds(tp)
    await read_up_to(log, tp, ledger, end)
    if ledger.rule.claim < counted:
        raise ClaimUnknown(tp, counted, "follows one that no longer counts")
    body = WriterClaimed(claim_id=claim_id, after=ledger.rule.claim, worker=worker_id)
    meta = EventMeta(
        event_id=derived_id("claim", claim_id),
        # A claim has no command and so no time of its own: the log's time does not advance.
        at_ms=ledger.now_ms,
        term=ledger.rule.claim,
        version=0,
        command_id=claim_id,
        command_digest="",
        tenant="",
    )
    records = [event_record(body, meta, log_key(tp.partition))]
    if event_signer is not None:
        records = event_signer.sign(*tp, ANYWHERE, records)
    offset = await appender.append(tp, records)
    await read_up_to(log, tp, ledger, offset + 1)
    return ledger.rule.claim == offset


def log_key(partition: int) -> bytes:
    """The key of records about the log itself; their partition is given explicitly."""
    return LOG_KEYS + b"%d" % partition
