"""Histories on a real log, and what is counted of them on the trust topic."""

import asyncio
import time
from itertools import product

from log.kafka.log import KafkaLog
from schemas.record import RawRecord
from schemas.trust import ClassPart, TrustPart
from schemas.trust_score import Placed
from services.domain.trust.book import TrustBook
from services.domain.trust.counting import KINDS, combine
from tests.processors.history import AGENTS, CLASSES, PROJECTS, TENANTS, TOOLS, History, PartKey
from tests.processors.role import (
    Role,
    newest_checkpoints,
    newest_class_parts,
    newest_parts,
    produce,
    read_all,
)

# The facts of each part and class: offset and kind.
Facts = dict[tuple[PartKey, str], list[tuple[int, str]]]


async def produce_all(role: Role, found: list[History], start: int = 0, stop: int | None = None) -> None:
    for history in found:
        records = history.records[start:stop]
        await produce(role.bootstrap_servers, role.topics.executions, history.partition, records)


async def records_of(role: Role) -> list[RawRecord]:
    return await read_all(role.bootstrap_servers, role.topics, role.partitions)


async def until_counted(
    role: Role, found: list[History], within_s: float = 40.0, stop: int | None = None
) -> list[RawRecord]:
    """Wait until the newest checkpoint of every partition reaches the end of its history, as far as it is written."""
    deadline = time.monotonic() + within_s
    ends = {history.partition: len(history.records[:stop]) - 1 for history in found}
    while True:
        raws = await records_of(role)
        if {n: c.through_offset for n, c in newest_checkpoints(raws).items()} == ends:
            return raws
        assert time.monotonic() < deadline, role.log[-4000:]
        await asyncio.sleep(0.1)


def counts_of(parts: list[TrustPart]) -> dict[int, dict[tuple[str, str, str, str], dict[str, int]]]:
    counts: dict[int, dict[tuple[str, str, str, str], dict[str, int]]] = {}
    for part in parts:
        nonzero: dict[str, int] = {kind: getattr(part, kind) for kind in KINDS if getattr(part, kind)}
        counts.setdefault(part.partition, {})[part.tenant, part.project, part.agent, part.tool] = nonzero
    return counts


def facts_of(parts: list[ClassPart]) -> dict[int, Facts]:
    """The facts of each part; of which the newest are kept."""
    found: dict[int, Facts] = {}
    for part in parts:
        key = (part.tenant, part.project, part.agent, part.tool), part.trust_class
        found.setdefault(part.partition, {})[key] = [(fact.offset, fact.kind) for fact in part.facts]
    return found


def expected_facts(found: list[History]) -> dict[int, Facts]:
    return {history.partition: history.facts for history in found}


def expected_of(found: list[History]) -> dict[int, dict[tuple[str, str, str, str], dict[str, int]]]:
    return {history.partition: {k: dict(v) for k, v in history.expected.items()} for history in found}


async def topic_id_of(role: Role) -> str:
    log = KafkaLog(role.bootstrap_servers, role.topics)
    try:
        return await log.topic_id(role.topics.executions)
    finally:
        await log.close()


def check_book(raws: list[RawRecord], topic_id: str) -> None:
    """A decider that reads the topic from its start cites the same."""
    ends = {raw.partition: raw.offset + 1 for raw in raws}
    book = TrustBook(ends, topic_id)
    for raw in raws:
        book.apply(raw)
    parts = newest_parts(raws)
    through = {n: found.through_offset for n, found in newest_checkpoints(raws).items()}
    classes = newest_class_parts(raws)
    for part in product(TENANTS, PROJECTS, AGENTS, TOOLS):
        cited = book.known(*part, CLASSES[0])
        assert cited is not None
        own = combine(
            found for found in parts if (found.tenant, found.project, found.agent, found.tool) == part
        )
        assert (cited.counts, cited.through) == (own, through)
        assert set(cited.facts) == {
            Placed(one.partition, fact)
            for one in classes
            if (one.tenant, one.project, one.agent, one.tool, one.trust_class) == (*part, CLASSES[0])
            for fact in one.facts
        }
