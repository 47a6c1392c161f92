"""A backtest of a whole log: its definitions first, then each partition of its executions in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from log.completeness import check_complete
from log.places import TopicPartition
from log.port import Log
from ops.backtest.counting import check_counts
from ops.backtest.found import Found
from ops.backtest.history import Candidate, History, InForceHere
from ops.backtest.partition import PartitionReplay, Window
from ops.backtest.trust import FactsOfLog, Rescoring
from schemas.event_signatures import LogSignatures
from schemas.headers import read_event
from schemas.ids import LOG_KEYS, TENANT_WIDE
from schemas.record import RawRecord, UnreadableRecord
from schemas.term import TermRule, rule_of
from schemas.trust_score import TrustFunction

Told = Callable[[int, int], None]


class Question(NamedTuple):
    """What is backtested: the candidate, over which time, and how records are verified (None: they are not).

    With a `function`, the trust in calls is computed by that one for the candidate.
    """

    candidate: Candidate
    window: Window = Window()
    signatures: LogSignatures | None = None
    function: TrustFunction | None = None


class Plan(NamedTuple):
    """A backtest before it has read the executions.

    `question` has the candidate where it would be published; `ends` are how far each partition is read.
    """

    question: Question
    history: History
    ends: Mapping[TopicPartition, int]

    @property
    def records(self) -> int:
        """How many records it reads."""
        return (1 if self.question.function is None else 2) * sum(self.ends.values())

    def found(self) -> Found:
        """What is found before anything is read."""
        return Found(
            project=self.question.candidate.project or TENANT_WIDE, definitions_refused=self.history.refused
        )


async def planned(log: Log, question: Question) -> Plan:
    """Read the definitions of a log, and how far it has to be read.

    Raises:
        PlaceUnclearError: the candidate's name is published for several projects.
        FactsDeleted: a partition does not begin at its first record.
        LogTruncated: a partition ends before what was counted of it.
        ClaimUnknown: the claim under which it was counted would not count any more.
        NothingCountsError: the definitions have records, and none of them counts.
        LogFromNewerVersion: a definition counts and cannot be read.
        LogError: the log cannot be read; see its subclasses.
    """
    await check_complete(log, question.signatures)
    topic = log.topics.executions
    partitions = [TopicPartition(topic, number) for number in range(await log.partition_count(topic))]
    ends = {tp: (await log.bounds(tp)).end for tp in partitions}
    history = await read_history(log, question.signatures)
    return Plan(question._replace(candidate=history.placed(question.candidate)), history, ends)


async def backtest(log: Log, question: Question, told: Told = lambda done, of: None) -> Found:
    """Replay a log up to the end that it has now.

    Args:
        log: a connected log.
        question: what is asked.
        told: hears how many records are read, of how many.

    Raises:
        PolicyRefused: the candidate does not compile, or cannot be published there.
        OperatorError: see `planned` and `replayed`.
    """
    return await replayed_all(log, await planned(log, question), told)


async def replayed_all(log: Log, plan: Plan, told: Told) -> Found:
    """Replay all partitions, one after the other; errors as `backtest`."""
    found, progress, rescoring = plan.found(), Progress(told, plan.records), None
    if plan.question.function is not None:
        facts = await _facts_of(log, plan.question, plan.ends, progress)
        rescoring = Rescoring(facts, plan.question.function)
    for tp in plan.ends:
        found.add(await replayed(log, plan, tp, progress.go_on, rescoring))
    if rescoring is not None:
        found.rescored, found.rescored_otherwise = rescoring.agreed, rescoring.differed
    return found


async def replayed(
    log: Log, plan: Plan, tp: TopicPartition, moved: Callable[[int], None], rescoring: Rescoring | None = None
) -> Found:
    """Replay one partition.

    Args:
        log: a connected log.
        plan: of the backtest.
        tp: the partition.
        moved: hears how many records more are read.
        rescoring: scores trust by the question's function.

    Raises:
        PolicyRefused: the candidate does not compile, or cannot be published there.
        NothingCountsError: it has records, and none of them counts.
        LogFromNewerVersion: a record about the log itself counts and cannot be read.
        LogError: the log cannot be read; see its subclasses.
    """
    question, found = plan.question, plan.found()
    here = InForceHere(plan.history, question.candidate)
    rule = rule_of(question.signatures, tp.topic)
    replay = PartitionReplay(tp.topic, rule, here, question.candidate, question.window, found, rescoring)
    async with aclosing(log.read(tp, 0, plan.ends[tp])) as chunks:
        async for chunk in chunks:
            replay.read(chunk)
            moved(len(chunk))
    replay.end()
    return found


@dataclass(slots=True)
class Progress:
    """How many records are read, of how many."""

    told: Told
    total: int
    done: int = 0

    def go_on(self, count: int) -> None:
        """So many records more are read."""
        self.done += count
        self.told(self.done, self.total)


async def _facts_of(
    log: Log, question: Question, ends: Mapping[TopicPartition, int], progress: Progress
) -> FactsOfLog:
    """The facts that count for classes of calls, in a pass of their own: verdicts cite those of all partitions."""
    facts = FactsOfLog()
    for tp, end in ends.items():
        rule = rule_of(question.signatures, tp.topic)
        async with aclosing(log.read(tp, 0, end)) as chunks:
            async for chunk in chunks:
                rule.foresee(chunk)
                for raw in chunk:
                    _follow(facts, raw, rule)
                progress.go_on(len(chunk))
        facts.end_of_partition(tp.partition)
    return facts


def _follow(facts: FactsOfLog, raw: RawRecord, rule: TermRule) -> None:
    try:
        event = read_event(raw)
    except UnreadableRecord:
        # The second pass says so, and sets its run aside.
        return
    if rule.admits(event, raw) and not event.key.startswith(LOG_KEYS):
        facts.take(event)


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
