"""A backtest of a whole log: its definitions first, then each partition of its executions in one pass."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import NamedTuple

from log.completeness import check_complete
from log.places import TopicPartition
from log.port import Log
from ops.backtest.counting import check_counts
from ops.backtest.found import Found
from ops.backtest.history import Candidate, History, InForceHere
from ops.backtest.partition import PartitionReplay, Window
from schemas.event_signatures import LogSignatures
from schemas.ids import TENANT_WIDE
from schemas.term import rule_of

Told = Callable[[int, int], None]


class Question(NamedTuple):
    """What is backtested: the candidate, over which time, and how records are verified (None: they are not)."""

    candidate: Candidate
    window: Window = Window()
    signatures: LogSignatures | None = None


async def backtest(log: Log, question: Question, told: Told = lambda done, of: None) -> Found:
    """Replay a log up to the end that it has now.

    Args:
        log: a connected log.
        question: what is asked.
        told: hears how many records are read, of how many.

    Raises:
        PlaceUnclearError: the candidate's name is published for several projects.
        PolicyRefused: the candidate does not compile, or cannot be published there.
        FactsDeleted: a partition does not begin at its first record.
        LogTruncated: a partition ends before what was counted of it.
        ClaimUnknown: the claim under which it was counted would not count any more.
        NothingCountsError: a partition has records, and none of them counts.
        LogFromNewerVersion: a definition, or a record about the log itself, counts and cannot be read.
        LogError: the log cannot be read; see its subclasses.
    """
    await check_complete(log, question.signatures)
    topic = log.topics.executions
    partitions = [TopicPartition(topic, number) for number in range(await log.partition_count(topic))]
    ends = {tp: (await log.bounds(tp)).end for tp in partitions}
    history = await read_history(log, question.signatures)
    candidate = history.placed(question.candidate)
    found, total, done = Found(project=candidate.project or TENANT_WIDE), sum(ends.values()), 0
    found.definitions_refused = history.refused
    for tp, end in ends.items():
        here = InForceHere(history, candidate)
        rule = rule_of(question.signatures, topic)
        replay = PartitionReplay(topic, rule, here, candidate, question.window, found)
        async with aclosing(log.read(tp, 0, end)) as chunks:
            async for chunk in chunks:
                replay.read(chunk)
                done += len(chunk)
                told(done, total)
        replay.end()
    return found


async def read_history(log: Log, signatures: LogSignatures | None) -> History:
    """Every state of the definitions.

    Raises:
        LogFromNewerVersion: a record counts and cannot be read.
        NothingCountsError: it has records, and none of them counts.
        LogError: the log cannot be read; see its subclasses.
    """
    tp = TopicPartition(log.topics.definitions, 0)
    history = History(rule_of(signatures, tp.topic))
    async with aclosing(log.read(tp, 0, (await log.bounds(tp)).end)) as chunks:
        async for chunk in chunks:
            history.read(chunk)
    check_counts(tp.topic, history.rule, history.counted, history.refused)
    return history
