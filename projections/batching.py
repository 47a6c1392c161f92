"""From records to one transaction: read, apply the term rule, fold, and gather what is to be written.

1. A record that cannot be read, or is a zombie's, changes no row of a view.
2. Several changes of one row inside a batch are written once.
3. A record that counts is a leaf of its tenant's audit tree, whether or not it can be read.
4. The position says up to where, with the claim in force there and the last record's id.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TypeGuard

from projections.audit.trees import Trees
from projections.cache import RowCache
from projections.folds import audit
from projections.folds.agents import counted
from projections.folds.dead_letters import dead_letter_row
from projections.folds.definitions import definition_row
from projections.folds.fold import fold_event
from projections.folds.rows import Row, place_of
from projections.folds.standing_rules import USES_OF, rule_id_of, standing_rule_row, use_row
from projections.folds.text import GIVEN_UP, body_text
from projections.store.port import Batch, Move, Position, Values
from projections.store.tables import (
    ADOPTIONS,
    AGENTS,
    ANSWERS,
    AUDIT_ENTRIES,
    AUDIT_TILES,
    AUDIT_TREES,
    COUNTERS,
    DEAD_LETTERS,
    DEFINITIONS,
    EDITS,
    EVENTS,
    EVIDENCE,
    EXECUTIONS,
    HOLDS,
    RULE_USES,
    SKIPPED_RECORDS,
    STANDING_RULES,
    TOOL_CALLS,
    VOTES,
    Table,
)
from schemas.audit import TopicRole, has_leaf
from schemas.canonical import sha256_hex
from schemas.events.definitions import DEFINITION_EVENTS, DataKeyDestroyed, PolicyRetired
from schemas.events.executions import CommandAbandoned, CommandRefused, is_reuse_refusal
from schemas.events.holds import DecisionRefused
from schemas.events.log import LOG_EVENTS, DefinitionsAdopted, WriterClaimed
from schemas.events.rules import RULE_EVENTS
from schemas.headers import read_event
from schemas.ids import split_rule_uses_key
from schemas.record import Event, RawRecord, UnreadableRecord
from schemas.refusals import Refusal
from schemas.seals import LogSeals
from schemas.standing_rule import RuleRefused
from schemas.term import TermRule, rule_of
from schemas.topics import Topics

logger = logging.getLogger(__name__)

_LOG_EVENTS = frozenset(LOG_EVENTS)
_REFUSED = frozenset({CommandRefused, DecisionRefused})
_NO_COUNTS: Row = dict.fromkeys(COUNTERS, 0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one partition that follow its position, in offset order."""

    position: Position
    records: Sequence[RawRecord]


@dataclass(slots=True)
class Gathered:
    """What a batch will write, while it grows."""

    events: list[Values] = field(default_factory=list)
    audits: list[Row] = field(default_factory=list)
    votes: list[Row] = field(default_factory=list)
    edits: list[Row] = field(default_factory=list)
    evidence: list[Row] = field(default_factory=list)
    definitions: list[Row] = field(default_factory=list)
    rule_uses: list[Row] = field(default_factory=list)
    skipped: list[Values] = field(default_factory=list)
    dead_letters: list[Row] = field(default_factory=list)
    answers: dict[tuple[str, str, str, str], Row] = field(default_factory=dict)
    agents: dict[tuple[str, str, str, str], Row] = field(default_factory=dict)
    adoptions: dict[int, Values] = field(default_factory=dict)


class Batcher:
    """Makes batches of records. After each batch say `written`; after a failure throw the batcher away."""

    def __init__(self, topics: Topics, rows: RowCache, trees: Trees, seals: LogSeals | None = None) -> None:
        self._topics = topics
        self._rows = rows
        self._trees = trees
        self._seals = seals

    def batch(self, chunks: Sequence[Chunk]) -> Batch:
        """The batch that the records make."""
        gathered = Gathered()
        moves = [self._chunk(chunk, gathered) for chunk in chunks]
        rows = self._rows
        trees, tiles = self._trees.rows()
        return Batch(
            moves,
            inserts={
                EVENTS.name: gathered.events,
                VOTES.name: values_of(VOTES, gathered.votes),
                EDITS.name: values_of(EDITS, gathered.edits),
                EVIDENCE.name: values_of(EVIDENCE, gathered.evidence),
                AUDIT_ENTRIES.name: values_of(AUDIT_ENTRIES, gathered.audits),
                DEFINITIONS.name: values_of(DEFINITIONS, gathered.definitions),
                RULE_USES.name: values_of(RULE_USES, gathered.rule_uses),
                SKIPPED_RECORDS.name: gathered.skipped,
            },
            upserts={
                EXECUTIONS.name: values_of(EXECUTIONS, rows.executions.touched.values()),
                TOOL_CALLS.name: values_of(TOOL_CALLS, rows.calls.touched.values()),
                HOLDS.name: values_of(HOLDS, rows.holds.touched.values()),
                STANDING_RULES.name: values_of(STANDING_RULES, rows.standing_rules.touched.values()),
                ANSWERS.name: values_of(ANSWERS, gathered.answers.values()),
                AGENTS.name: values_of(AGENTS, gathered.agents.values()),
                DEAD_LETTERS.name: values_of(DEAD_LETTERS, gathered.dead_letters),
                ADOPTIONS.name: list(gathered.adoptions.values()),
                AUDIT_TREES.name: trees,
                AUDIT_TILES.name: tiles,
            },
        )

    def written(self) -> None:
        """The last batch is in the database."""
        self._rows.written()
        self._trees.written()

    def _chunk(self, chunk: Chunk, gathered: Gathered) -> Move:
        position = chunk.position
        rule = rule_of(self._seals, position.topic, position.claim)
        if position.topic == self._topics.dead_letters:
            gathered.dead_letters.extend(map(dead_letter_row, chunk.records))
        else:
            self._admit(chunk, rule, gathered)
        last = chunk.records[-1]
        after = replace(position, next_offset=last.offset + 1, claim=rule.claim, record_id=record_id_of(last))
        return Move(position if position.next_offset or position.record_id else None, after)

    def _admit(self, chunk: Chunk, rule: TermRule, gathered: Gathered) -> None:
        topic = chunk.position.topic
        role: TopicRole = "definitions" if topic == self._topics.definitions else "executions"
        fold = self._fold_definition if role == "definitions" else self._fold
        read = [_read(raw) for raw in chunk.records]
        if role == "executions":
            self._rows.fetch(filter(_is_of_execution, read))
        leaves = []
        for raw, event in zip(chunk.records, read, strict=True):
            try:
                if isinstance(event, UnreadableRecord):
                    raise event
                if rule.admits(event, raw):
                    if role == "executions" and isinstance(event.body, DefinitionsAdopted):
                        _adopt(event, event.body, raw.timestamp_ms, gathered)
                    fold(event, gathered)
                    if type(event.body) is not WriterClaimed:
                        leaves.append(raw)
            except UnreadableRecord as error:
                logger.error("%s/%d@%d was skipped: %s", topic, raw.partition, raw.offset, error)
                gathered.skipped.append((topic, raw.partition, raw.offset, error.reason, error.detail))
                if has_leaf(raw, rule.claim) and rule.vouches(raw):
                    leaves.append(raw)
        self._trees.grow(role, chunk.position, leaves)

    def _fold(self, event: Event, gathered: Gathered) -> None:
        if type(event.body) in _LOG_EVENTS:
            return
        rows, key = self._rows, event.key
        if (uses := split_rule_uses_key(key)) is not None:
            _fold_use(event, uses, gathered)
            return
        try:
            tenant, project, execution_id = place_of(key)
        except ValueError as error:
            raise UnreadableRecord("malformed", str(error)) from error
        event, text = body_text(event)
        after = fold_event(event, rows)
        if after.execution is not None:
            rows.executions.put(key, after.execution)
        if after.call is not None:
            rows.calls.put((key, after.call["call_id"]), after.call)
        if after.hold is not None:
            rows.holds.put((key, after.hold["hold_id"]), after.hold)
        if after.audit is not None:
            gathered.audits.append(after.audit)
        if after.vote is not None:
            gathered.votes.append(after.vote)
        if after.evidence is not None:
            gathered.evidence.append(after.evidence)
        gathered.edits.extend(after.edits)
        if (found := counted(event, execution=after.execution, call=after.call)) is not None:
            _count(event, (tenant, project, found.agent, found.tool), found.counters, gathered)
        _answer(event, (tenant, project), self._topics.executions, gathered)
        gathered.events.append(_event_values(event, tenant, project, execution_id, text))

    def _fold_definition(self, event: Event, gathered: Gathered) -> None:
        if type(event.body) in _LOG_EVENTS:
            return
        event, _ = body_text(event)
        if isinstance(event.body, RULE_EVENTS):
            self._fold_rule(event, gathered)
        elif isinstance(event.body, DataKeyDestroyed):
            gathered.audits.append(audit.destruction_entry(event))
        elif isinstance(event.body, DEFINITION_EVENTS):
            gathered.definitions.append(definition_row(event))
            is_retirement = isinstance(event.body, PolicyRetired)
            entry = audit.retirement_entry if is_retirement else audit.publication_entry
            gathered.audits.append(entry(event))
        elif isinstance(event.body, CommandRefused):
            rule = self._rows.standing_rules.get((event.meta.tenant, event.body.subject_id))
            gathered.audits.append(audit.refused_publication_entry(event, rule))
        elif isinstance(event.body, CommandAbandoned):
            gathered.audits.append(audit.abandoned_publication_entry(event))
        _answer(event, (event.meta.tenant, audit.NO_PROJECT), self._topics.definitions, gathered)

    def _fold_rule(self, event: Event, gathered: Gathered) -> None:
        rules, address = self._rows.standing_rules, (event.meta.tenant, rule_id_of(event.body))
        before = rules.get(address)
        try:
            after = standing_rule_row(before, event)
        except RuleRefused as error:
            raise UnreadableRecord("malformed", str(error)) from error
        if after is not None:
            rules.put(address, after)
            gathered.audits.append(audit.rule_entry(event, before, after))


def _read(raw: RawRecord) -> Event | UnreadableRecord:
    try:
        return read_event(raw)
    except UnreadableRecord as error:
        return error


def _is_of_execution(read: Event | UnreadableRecord) -> TypeGuard[Event]:
    """Whether a record is an event of something whose rows are kept: not about the log, nor a use of a rule."""
    if isinstance(read, UnreadableRecord) or type(read.body) in _LOG_EVENTS:
        return False
    try:
        place_of(read.key)
    except ValueError:
        return False
    return True


def record_id_of(raw: RawRecord) -> str:
    """What names a record: its event id, or a digest where it has none."""
    for name, value in raw.headers:
        if name == "ce_id" and value:
            return value.decode(errors="replace")
    return sha256_hex(raw.value)[:32]


def values_of(table: Table, rows: Iterable[Row]) -> list[Values]:
    """Rows as tuples in the order of the table's columns."""
    return list(map(_GETTERS[table.name], rows))


_GETTERS = {
    table.name: itemgetter(*table.names)
    for table in (
        EXECUTIONS,
        TOOL_CALLS,
        HOLDS,
        AUDIT_ENTRIES,
        ANSWERS,
        DEFINITIONS,
        STANDING_RULES,
        RULE_USES,
        AGENTS,
        DEAD_LETTERS,
        VOTES,
        EDITS,
        EVIDENCE,
    )
}


def _event_values(event: Event, tenant: str, project: str, execution_id: str, text: str) -> Values:
    meta = event.meta
    return (
        tenant,
        project,
        execution_id,
        event.partition,
        event.offset,
        meta.version,
        meta.event_id,
        event.type,
        meta.at_ms,
        meta.term,
        meta.command_id,
        meta.command_digest,
        meta.command_offset,
        text,
    )


def _fold_use(event: Event, place: tuple[str, str, str], gathered: Gathered) -> None:
    """An event of the uses of a rule: no answer is kept, since no client asks."""
    tenant, project, rule_id = place
    event, text = body_text(event)
    if (row := use_row(event)) is not None:
        gathered.rule_uses.append(row)
    gathered.events.append(_event_values(event, tenant, project, USES_OF + rule_id, text))


def _adopt(event: Event, body: DefinitionsAdopted, written_at_ms: int, gathered: Gathered) -> None:
    # An adoption follows no command, so its own time is the log's as it stood: of the last decision before, or 0.
    at_ms = max(event.meta.at_ms, written_at_ms)
    gathered.adoptions[event.partition] = (event.partition, body.through_offset, at_ms, event.offset)


def _count(
    event: Event, key: tuple[str, str, str, str], counters: tuple[str, ...], gathered: Gathered
) -> None:
    row = gathered.agents.get(key)
    if row is None:
        names = dict(zip(AGENTS.key, key, strict=True))
        row = gathered.agents[key] = {**names, **_NO_COUNTS, "last_seen_at_ms": 0}
    for counter in counters:
        row[counter] += 1
    row["last_seen_at_ms"] = max(row["last_seen_at_ms"], event.meta.at_ms)


def _answer(event: Event, owner: tuple[str, str], topic: str, gathered: Gathered) -> None:
    meta = event.meta
    # What refuses another body under a known id says nothing of the command that the id stands for.
    if not meta.command_id or is_reuse_refusal(event.body):
        return
    # Services choose their command ids, and the same id on another key is another command.
    key = (*owner, meta.command_id, event.key.decode())
    row = gathered.answers.get(key)
    if row is None:
        row = gathered.answers[key] = {
            "tenant": owner[0],
            "project": owner[1],
            "command_id": meta.command_id,
            "command_digest": meta.command_digest,
            "topic": topic,
            "log_key": key[3],
            "log_partition": event.partition,
            "first_offset": event.offset,
            "code": None,
            "detail": None,
        }
    row["last_offset"] = event.offset
    if type(event.body) in _REFUSED:
        row["code"], row["detail"] = str(event.body.code), event.body.detail  # type: ignore[attr-defined]
    elif isinstance(event.body, CommandAbandoned):
        row["code"] = str(Refusal.UNAVAILABLE)
        row["detail"] = f"{GIVEN_UP} {event.body.attempts} attempts"
