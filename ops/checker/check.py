"""`check`: every violation that the log and the clients' histories show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

from log.places import TopicPartition
from log.port import Log
from ops.checker.clients import Line
from ops.checker.facts import Fact, counting
from ops.checker.reading import Reading
from ops.checker.violations import Violation
from schemas.event_signatures import LogSignatures
from schemas.record import RawRecord
from schemas.topics import Topics

Records = Mapping[TopicPartition, Sequence[RawRecord]]
Bounds = Mapping[TopicPartition, tuple[int, int]]
Told = Callable[[int, int], None]


async def read_log(log: Log, told: Told = lambda done, of: None) -> dict[TopicPartition, list[RawRecord]]:
    """Every record of every partition that the checker looks at, all in memory: for a short log.

    Args:
        log: the log.
        told: hears how many offsets were read, and of how many.
    """
    found: dict[TopicPartition, list[RawRecord]] = {}
    await _read(
        log,
        lambda tp, first: None,
        lambda tp, raws: found.setdefault(tp, []).extend(raws),
        lambda tp: None,
        told,
    )
    return found


async def check_log(
    log: Log,
    histories: Iterable[Line] = (),
    *,
    signatures: LogSignatures | None = None,
    told: Told = lambda done, of: None,
    note: Callable[[str], None] = lambda text: None,
    released: Callable[[int, int], None] = lambda releases, computed: None,
) -> tuple[int, list[Violation]]:
    """Look for broken invariants in a log of any length, which may move meanwhile.

    What has to be remembered goes to disk, so that memory does not grow with the log.

    Args:
        log: the log.
        histories: see `check`.
        signatures: see `check`.
        told: hears how many offsets were read, and of how many.
        note: hears what is worth knowing and nothing wrong, a sentence each.
        released: hears how many calls trust released, and of how many the score was computed again.

    Returns:
        How many records were read, and the violations.
    """
    reading = Reading(log.topics, histories, signatures=signatures)
    try:
        await _read(log, reading.begin, reading.take, reading.end, told)
        for tp, (_, end) in (await _bounds(log)).items():
            reading.ends_at(tp, end)
        found = reading.violations()
        for text in reading.notes:
            note(text)
        released(*reading.releases)
        return reading.count, found
    finally:
        reading.close()


def check(
    records: Records,
    histories: Iterable[Line] = (),
    *,
    topics: Topics | None = None,
    at_rest_ms: int | None = None,
    signatures: LogSignatures | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> list[Violation]:
    """Look for broken invariants (I1–I7, I9, I10, I12) in a log.

    Args:
        records: by partition, each from its beginning: those of executions, and as far as they are known of
            definitions, commands and dead letters, which let more be said.
        histories: lines of the clients' own histories; see `ops.checker.clients`.
        topics: the names of the topics.
        at_rest_ms: the log's time at which everything should have come to rest, or None while it still moves.
        signatures: tells which records a decider signed; None where nothing is signed.
        note: hears what is worth knowing and nothing wrong, a sentence each.

    Returns:
        The violations: as they are met, partition by partition, and then those that take the whole log.
    """
    names = topics or Topics()
    reading = Reading(names, histories, at_rest_ms=at_rest_ms, signatures=signatures)
    try:
        for tp in _in_order(records, names):
            reading.take(tp, records[tp])
            reading.end(tp)
        found = reading.violations()
        for text in reading.notes:
            note(text)
        return found
    finally:
        reading.close()


def counting_facts(records: Records, topic: str) -> list[Fact]:
    """The counting facts of all partitions of a topic."""
    return [fact for tp in sorted(records) if tp.topic == topic for fact in counting(tp, records[tp])]


async def _read(
    log: Log,
    begin: Callable[[TopicPartition, int], None],
    take: Callable[[TopicPartition, Sequence[RawRecord]], None],
    end: Callable[[TopicPartition], None],
    told: Told,
) -> None:
    bounds = await _bounds(log)
    done, of = 0, sum(last - first for first, last in bounds.values())
    for tp in _in_order(bounds, log.topics):
        known, last = bounds[tp]
        # What retention has taken since is not there to be read.
        held = max(known, (await log.bounds(tp))[0])
        first = min(held, last)
        begin(tp, held)
        take(tp, [])
        async with aclosing(log.read(tp, first, last)) as chunks:
            async for chunk in chunks:
                take(tp, chunk)
                told(done + chunk[-1].offset + 1 - known, of)
        end(tp)
        done += last - known
    told(done, of)


async def _bounds(log: Log) -> Bounds:
    """From where to where each partition is read.

    The ends of events are fixed before those of the commands that they answer, and of the definitions that they speak
    of, so that a log may move meanwhile.
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
    return {tp: await log.bounds(tp) for tp in every}


def _in_order(partitions: Iterable[TopicPartition], names: Topics) -> list[TopicPartition]:
    """What is spoken of before what speaks of it: letters, definitions, then each partition's commands and events."""
    rank = {names.dead_letters: 0, names.definition_commands: 1, names.definitions: 2}
    known = {*rank, names.commands, names.executions}
    return sorted(
        (tp for tp in partitions if tp.topic in known),
        key=lambda tp: (rank.get(tp.topic, 3), tp.partition, tp.topic == names.executions),
    )
