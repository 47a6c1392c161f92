"""From records to one transaction: read, apply the term rule, fold, and collect the rows to write.

1. A record that cannot be read, or that comes from a deposed writer, changes no row of a view.
2. If a batch changes one row several times, the row is written once.
3. A record that counts is a leaf of its tenant's audit tree, whether or not it can be read.
4. The position stores the next offset, the claim in force at that point and the last record's id.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeGuard

from projections.audit.trees import Trees
from projections.cache import RowCache
from projections.folds.agents import counted
from projections.folds.audit import NO_PROJECT
from projections.folds.dead_letters import dead_letter_row
from projections.folds.definitions import fold_definition, rule_named
from projections.folds.effects import New, new
from projections.folds.fold import fold_event
from projections.folds.rows import place_of
from projections.folds.standing_rules import USES_OF, use_row
from projections.folds.text import GIVEN_UP, body_text
from projections.spans import ProjectorSpans
from projections.store.port import Batch, Move, Position, Values
from projections.store.tables import TABLES
from projections.tables.agents import AGENTS, AgentRow, Counter
from projections.tables.answers import ANSWERS, AnswerRow
from projections.tables.audit import AUDIT_TILES, AUDIT_TREES
from projections.tables.calls import TOOL_CALLS
from projections.tables.columns import R, TableOf
from projections.tables.conversations import TURNS
from projections.tables.events import EVENTS
from projections.tables.executions import EXECUTIONS
from projections.tables.holds import HOLDS
from projections.tables.log import ADOPTIONS, DEAD_LETTERS, SKIPPED_RECORDS, DeadLetterRow
from projections.tables.standing_rules import RULE_USES, STANDING_RULES
from schemas.audit import TopicRole, has_leaf
from schemas.canonical import sha256_hex
from schemas.event_signatures import LogSignatures
from schemas.events.executions import CommandAbandoned, CommandRefused, is_reuse_refusal
from schemas.events.holds import DecisionRefused
from schemas.events.log import LOG_EVENTS, DefinitionsAdopted, WriterClaimed
from schemas.headers import read_event
from schemas.ids import split_rule_uses_key
from schemas.record import Event, RawRecord, UnreadableRecord
from schemas.refusals import Refusal
from schemas.standing_rule import RuleRefused
from schemas.term import TermRule
from schemas.topics import Topics

logger = logging.getLogger(__name__)

_LOG_EVENTS = frozenset(LOG_EVENTS)
_REFUSED = frozenset({CommandRefused, DecisionRefused})


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one partition that follow its position, in offset order."""

    position: Position
    records: Sequence[RawRecord]


@dataclass(slots=True)
class Gathered:
    """The rows that a batch will write, while it grows."""

    added: dict[str, list[Values]] = field(default_factory=lambda: {table.name: [] for table in TABLES})
    dead_letters: list[DeadLetterRow] = field(default_factory=list)
    answers: dict[tuple[str, str, str, str], AnswerRow] = field(default_factory=dict)
    agents: dict[tuple[str, str, str, str], AgentRow] = field(default_factory=dict)
    adoptions: dict[int, Values] = field(default_factory=dict)

    def add(self, rows: Iterable[New]) -> None:
        """Add rows that are new in their tables."""
        for table, row in rows:
            self.added[table.name].append(table.values(row))


class Batcher:
    """Makes batches of records. Call `written` after each batch; after a failure discard the batcher."""

    def __init__(
        self, topics: Topics, rows: RowCache, trees: Trees, signatures: LogSignatures | None = None
    ) -> None:
        self._topics = topics
        self._rows = rows
        self._trees = trees
        # One of each topic for as long as this reads: it remembers which records counted and which were displaced.
        self._signatures_of = cache(signatures.of) if signatures else None
        # Set by a projector that traces.
        self.spans: ProjectorSpans | None = None

    def batch(self, chunks: Sequence[Chunk]) -> Batch:
        """Returns the batch for these records."""
        gathered = Gathered()
        if self.spans is not None:
            self.spans.begin()
        moves = [self._chunk(chunk, gathered) for chunk in chunks]
        rows = self._rows
        trees, tiles = self._trees.rows()
        return Batch(
            moves,
            inserts=gathered.added,
            upserts={
                EXECUTIONS.name: values_of(EXECUTIONS, rows.executions.touched.values()),
                TOOL_CALLS.name: values_of(TOOL_CALLS, rows.calls.touched.values()),
                HOLDS.name: values_of(HOLDS, rows.holds.touched.values()),
                TURNS.name: values_of(TURNS, rows.turns.touched.values()),
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
        """Note that the last batch is in the database."""
        self._rows.written()
        self._trees.written()
        if self.spans is not None:
            self.spans.written()

    def _chunk(self, chunk: Chunk, gathered: Gathered) -> Move:
        position = chunk.position
        rule = TermRule(position.claim, self._signatures_of(position.topic) if self._signatures_of else None)
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
        rule.foresee(chunk.records)
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
                skipped = (topic, raw.partition, raw.offset, error.reason, error.detail)
                gathered.added[SKIPPED_RECORDS.name].append(skipped)
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
        if self.spans is not None:
            self.spans.folded(event, after.hold)
        if after.execution is not None:
            rows.executions.put(key, after.execution)
        if after.call is not None:
            rows.calls.put((key, after.call["call_id"]), after.call)
        if after.hold is not None:
            rows.holds.put((key, after.hold["hold_id"]), after.hold)
        if after.turn is not None:
            rows.turns.put((key, after.turn["turn_id"]), after.turn)
        gathered.add(after.rows)
        if (found := counted(event, execution=after.execution, call=after.call)) is not None:
            _count(event, (tenant, project, found.agent, found.tool), found.counters, gathered)
        _answer(event, (tenant, project), self._topics.executions, gathered)
        gathered.added[EVENTS.name].append(_event_values(event, tenant, project, execution_id, text))

    def _fold_definition(self, event: Event, gathered: Gathered) -> None:
        if type(event.body) in _LOG_EVENTS:
            return
        event, _ = body_text(event)
        rules, address = self._rows.standing_rules, (event.meta.tenant, rule_named(event.body))
        try:
            after = fold_definition(event, rules.get(address) if address[1] else None)
        except RuleRefused as error:
            raise UnreadableRecord("malformed", str(error)) from error
        if after.rule is not None:
            rules.put(address, after.rule)
        gathered.add(after.rows)
        _answer(event, (event.meta.tenant, NO_PROJECT), self._topics.definitions, gathered)


def _read(raw: RawRecord) -> Event | UnreadableRecord:
    try:
        return read_event(raw)
    except UnreadableRecord as error:
        return error


def _is_of_execution(read: Event | UnreadableRecord) -> TypeGuard[Event]:
    """Returns True for an event whose aggregate has rows: not an event about the log, nor a use of a rule."""
    if isinstance(read, UnreadableRecord) or type(read.body) in _LOG_EVENTS:
        return False
    try:
        place_of(read.key)
    except ValueError:
        return False
    return True


def record_id_of(raw: RawRecord) -> str:
    """The name of a record: its event id, or a digest if it has none."""
    for name, value in raw.headers:
        if name == "ce_id" and value:
            return value.decode(errors="replace")
    return sha256_hex(raw.value)[:32]


def values_of(table: TableOf[R], rows: Iterable[R]) -> list[Values]:
    """Rows as tuples in the order of the table's columns."""
    return list(map(table.values, rows))


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
    """Fold an event about the uses of a rule. No answer is stored, because no client requests one."""
    tenant, project, rule_id = place
    event, text = body_text(event)
    if (row := use_row(event)) is not None:
        gathered.add([new(RULE_USES, row)])
    gathered.added[EVENTS.name].append(_event_values(event, tenant, project, USES_OF + rule_id, text))


def _adopt(event: Event, body: DefinitionsAdopted, written_at_ms: int, gathered: Gathered) -> None:
    # An adoption follows no command, so its own time is the log's time before it: that of the last decision, or 0.
    at_ms = max(event.meta.at_ms, written_at_ms)
    gathered.adoptions[event.partition] = (event.partition, body.through_offset, at_ms, event.offset)


def _count(
    event: Event, key: tuple[str, str, str, str], counters: tuple[Counter, ...], gathered: Gathered
) -> None:
    row = gathered.agents.get(key)
    if row is None:
        row = gathered.agents[key] = _no_counts(*key)
    for counter in counters:
        row[counter] += 1
    row["last_seen_at_ms"] = max(row["last_seen_at_ms"], event.meta.at_ms)


def _no_counts(tenant: str, project: str, agent: str, tool: str) -> AgentRow:
    return {
        "tenant": tenant,
        "project": project,
        "agent": agent,
        "tool": tool,
        "proposed": 0,
        "allowed": 0,
        "held": 0,
        "denied": 0,
        "approved": 0,
        "edited": 0,
        "rejected": 0,
        "votes": 0,
        "succeeded": 0,
        "failed": 0,
        "unknown": 0,
        "refused": 0,
        "last_seen_at_ms": 0,
    }


def _answer(event: Event, owner: tuple[str, str], topic: str, gathered: Gathered) -> None:
    meta = event.meta
    # A refusal of another body under a known id says nothing about the command that has this id.
    if not meta.command_id or is_reuse_refusal(event.body):
        return
    # Services choose their command ids; the same id under another key is another command.
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
            "last_offset": event.offset,
            "code": None,
            "detail": None,
        }
    row["last_offset"] = event.offset
    if type(event.body) in _REFUSED:
        row["code"], row["detail"] = str(event.body.code), event.body.detail  # type: ignore[attr-defined]
    elif isinstance(event.body, CommandAbandoned):
        row["code"] = str(Refusal.UNAVAILABLE)
        row["detail"] = f"{GIVEN_UP} {event.body.attempts} attempts"
