"""`check`: every violation that the log and the clients' histories show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

from ops.checker.asked import Asked, check_answers, check_no_command_was_passed_over, read_commands
from ops.checker.clients import Line, check_histories
from ops.checker.facts import Fact, counting
from ops.checker.partition import PartitionSeen, traces
from ops.checker.published import published
from ops.checker.rest import check_rest
from ops.checker.violations import Violation
from schemas.record import RawRecord
from schemas.seals import LogSeals
from schemas.topics import Topics
from services.runtime.log import Log, TopicPartition

Records = Mapping[TopicPartition, Sequence[RawRecord]]


async def read_log(
    log: Log, told: Callable[[int, int], None] = lambda done, of: None
) -> dict[TopicPartition, list[RawRecord]]:
    """Every record of every partition that the checker looks at, from the first to the high watermark.

    Events are read before the commands that they answer, so that a log may move meanwhile.

    Args:
        log: the log.
        told: hears how many offsets were read, and of how many.
    """
    names = log.topics
    topics = (
        names.executions,
        names.commands,
        names.definitions,
        names.definition_commands,
        names.dead_letters,
    )
    every = [
        TopicPartition(name, number) for name in topics for number in range(await log.partition_count(name))
    ]
    known = {tp: await log.bounds(tp) for tp in every}
    found: dict[TopicPartition, list[RawRecord]] = {}
    done, of = 0, sum(end - first for first, end in known.values())
    for tp in every:
        # Anew: what is read later must not end before what was read earlier speaks of it.
        first, end = await log.bounds(tp)
        of += end - known[tp][1]
        records = found[tp] = []
        async with aclosing(log.read(tp, first, end)) as chunks:
            async for chunk in chunks:
                records.extend(chunk)
                told(done + chunk[-1].offset + 1 - first, of)
        done += end - first
    told(done, of)
    return found


def check(
    events_by_partition: Records,
    histories: Iterable[Line] = (),
    *,
    topics: Topics | None = None,
    at_rest_ms: int | None = None,
    seals: LogSeals | None = None,
) -> list[Violation]:
    """Look for broken invariants (I1–I7, I9, I10, I12) in a log.

    Args:
        events_by_partition: records by partition, each from its beginning: those of executions, and as far as
            they are known of definitions, commands and dead letters, which let more be said.
        histories: lines of the clients' own histories; see `ops.checker.clients`.
        topics: the names of the topics.
        at_rest_ms: the log's time at which everything should have come to rest, or None while it still moves.
        seals: tells which records a decider signed; None where nothing is signed.

    Returns:
        The violations in the order of the log.
    """
    names = topics or Topics()
    found: list[Violation] = []
    definitions = _facts(events_by_partition, names.definitions, seals)

    def forged(tp: TopicPartition, raw: RawRecord) -> None:
        what = "a record in the term in force that no decider signed for its place"
        found.append(Violation("I7", f"{tp}@{raw.offset}", what, (raw.key.decode(errors="replace"),)))

    book = published(fact for facts in definitions.values() for fact in facts)
    letters = _dead_letters(events_by_partition, names)
    every: list[Fact] = []
    decided = (*definitions.values(), *_facts(events_by_partition, names.executions).values())
    newest_ms = max((fact.at_ms for facts in decided for fact in facts), default=0)
    for events, commands in (
        (names.definitions, names.definition_commands),
        (names.executions, names.commands),
    ):
        for tp, facts in _facts(events_by_partition, events, seals, forged).items():
            asked = _asked(events_by_partition, TopicPartition(commands, tp.partition), newest_ms)
            seen = PartitionSeen(book, asked, found.append, of_executions=events == names.executions)
            seen.read(facts)
            _check_commands(asked, facts, letters, at_rest_ms is not None, found.append)
            if at_rest_ms is not None:
                check_rest(seen.runs, at_rest_ms, found.append)
            every += facts
    book.rules.end(found.append)
    check_histories(every, histories, found.append)
    return found


def counting_facts(records: Records, topic: str) -> list[Fact]:
    """The counting facts of all partitions of a topic."""
    return [fact for facts in _facts(records, topic).values() for fact in facts]


def _facts(
    records: Records,
    topic: str,
    seals: LogSeals | None = None,
    forged: Callable[[TopicPartition, RawRecord], None] = lambda tp, raw: None,
) -> dict[TopicPartition, list[Fact]]:
    own = seals.of(topic) if seals else None
    return {tp: counting(tp, raws, own, forged) for tp, raws in sorted(records.items()) if tp.topic == topic}


def _asked(records: Records, tp: TopicPartition, newest_ms: int) -> Asked | None:
    return read_commands(tp, records[tp], newest_ms) if tp in records else None


def _dead_letters(records: Records, names: Topics) -> frozenset[str]:
    return frozenset(
        dict(raw.headers).get("ce_id", b"").decode(errors="replace")
        for tp, raws in records.items()
        if tp.topic == names.dead_letters
        for raw in raws
    )


def _check_commands(
    asked: Asked | None,
    facts: Sequence[Fact],
    letters: frozenset[str],
    at_rest: bool,
    report: Callable[[Violation], None],
) -> None:
    if asked is not None:
        check_answers(asked, traces(facts), report)
        check_no_command_was_passed_over(asked, facts, letters, at_rest, report)
