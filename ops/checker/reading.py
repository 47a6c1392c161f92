"""A log as it is read once, partition by partition: what it must not show is told, the rest goes to the scratch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from log.places import TopicPartition
from ops.checker.asked import Asked
from ops.checker.calls import Runs, RunSeen
from ops.checker.clients import Heard, Line
from ops.checker.facts import FactReader
from ops.checker.partition import PartitionSeen
from ops.checker.published import Published
from ops.checker.rest import check_rest
from ops.checker.rules import RulesSeen
from ops.checker.scratch import Scratch, Shelf
from ops.checker.traces import Traces
from ops.checker.violations import Violation
from schemas.event_signatures import LogSignatures
from schemas.record import RawRecord
from schemas.topics import Topics


class Reading:
    """Takes records by `take`, each partition to its `end`.

    Dead letters come first, then definitions, then each partition's commands and its events. `notes` are sentences on
    what is worth knowing and nothing wrong.
    """

    def __init__(
        self,
        topics: Topics,
        histories: Iterable[Line] = (),
        *,
        at_rest_ms: int | None = None,
        signatures: LogSignatures | None = None,
    ) -> None:
        """Begin with nothing read.

        Args:
            topics: the names of the topics.
            histories: lines of the clients' own histories.
            at_rest_ms: the log's time at which everything should have come to rest, or None while it still moves.
            signatures: tells which records a decider signed; None where nothing is signed.
        """
        self.count = 0
        self.notes: list[str] = []
        self._topics = topics
        self._at_rest_ms = at_rest_ms
        self._signatures = signatures
        self._found: list[Violation] = []
        self._scratch = Scratch()
        self._published = Published(rules=RulesSeen(self._scratch))
        self._runs = Runs(self._scratch)
        # An execution can have the same key as a definition: `acme/policy/payments`.
        self._versions: dict[bool, Shelf[int]] = {
            True: Shelf(self._scratch, "version of an execution", int),
            False: Shelf(self._scratch, "version of a definition", int),
        }
        self._heard = Heard(histories)
        self._asked: dict[TopicPartition, Asked] = {}
        self._events: _Events | None = None
        self._late: dict[TopicPartition, int] = {}
        self._newest_ms = 0

    def take(self, tp: TopicPartition, raws: Sequence[RawRecord]) -> None:
        """Take the next records of a partition; none at all still say that it is there."""
        self.count += len(raws)
        names = self._topics
        if tp.topic == names.dead_letters:
            ids = [(dict(raw.headers).get("ce_id", b"") or b"").decode(errors="replace") for raw in raws]
            self._scratch.add("INSERT OR IGNORE INTO letters VALUES (?)", [(one,) for one in ids])
        elif tp.topic in (names.commands, names.definition_commands):
            self._asked.setdefault(tp, Asked(tp, self._scratch)).read(raws)
        else:
            self._take_events(tp, raws)

    def begin(self, tp: TopicPartition, first: int) -> None:
        """Say at which offset a partition begins, before any of its records is taken."""
        if tp.topic in self._topics.facts and first != 0:
            self._late[tp] = first

    def ends_at(self, tp: TopicPartition, offset: int) -> None:
        """Say where a partition ended once all had been read: a log that moves is longer by then."""
        if tp.topic == self._topics.executions:
            self._runs.trust.ends_at(tp.partition, offset)

    def end(self, tp: TopicPartition) -> None:
        """Say that a partition was read to its end."""
        events, self._events = self._events, None
        if (first := self._late.get(tp)) is not None:
            self._found.append(_deleted(tp, first, events is not None and events.counted))
        if events is not None and (displaced := events.reader.displaced):
            self.notes.append(
                f"{tp}: {displaced:,} records of deciders were appended after the place that they were signed for; "
                "they do not count and are not forgeries"
            )
        if events is not None and events.asked is not None:
            events.traces.check_answers(self._found.append)
            at_rest = self._at_rest_ms is not None
            waiting = events.traces.check_commands(events.asked.tp, at_rest, self._found.append)
            if waiting and not at_rest:
                self.notes.append(_unanswered(waiting, events.asked.tp, tp))

    @property
    def releases(self) -> tuple[int, int]:
        """How many calls trust released, and of how many the score was computed again, once all was looked at."""
        return self._runs.trust.releases, self._runs.trust.computed

    def violations(self) -> list[Violation]:
        """Everything that was found, once all partitions were read."""
        for asked in self._asked.values():
            self._found += asked.doubted(self._newest_ms)
        if self._at_rest_ms is not None:
            runs = (
                (key, RunSeen(key, facts, self._runs, self._published, self._found.append))
                for key, facts in self._runs.facts.items()
            )
            check_rest(runs, self._at_rest_ms, self._found.append)
        self._published.rules.end(self._found.append)
        self.notes += self._runs.trust.end(self._published.people, self._found.append)
        self._heard.check(self._found.append)
        return self._found

    def close(self) -> None:
        """Let go of the disk."""
        self._scratch.close()

    def _take_events(self, tp: TopicPartition, raws: Sequence[RawRecord]) -> None:
        if self._events is None:
            self._events = self._begin(tp)
        events, of_definitions = self._events, tp.topic == self._topics.definitions
        for fact in events.reader.read(raws):
            if not fact.counts:
                continue
            events.counted = True
            self._newest_ms = max(self._newest_ms, fact.at_ms)
            if of_definitions:
                self._published.read(fact)
            events.seen.read(fact)
            events.traces.read(fact)
            if events.asked is not None and not fact.is_about_log:
                events.asked.check(fact, self._found.append)
            self._heard.read(fact)
        if tp.topic == self._topics.executions:
            self._runs.trust.read_through(tp.partition, raws[-1].offset if raws else -1)

    def _begin(self, tp: TopicPartition) -> _Events:
        names = self._topics
        of_executions = tp.topic == names.executions
        commands = names.commands if of_executions else names.definition_commands
        asked = self._asked.get(TopicPartition(commands, tp.partition))
        seen = PartitionSeen(
            self._published,
            asked,
            self._found.append,
            self._runs,
            self._versions[of_executions],
            of_executions=of_executions,
        )
        own = self._signatures.of(tp.topic) if self._signatures else None
        return _Events(FactReader(tp, own, self._forged), seen, Traces(tp, self._scratch), asked)

    def _forged(self, tp: TopicPartition, raw: RawRecord) -> None:
        what = "a record in the term in force that no decider signed for its place"
        self._found.append(Violation("I7", f"{tp}@{raw.offset}", what, (raw.key.decode(errors="replace"),)))


class _Events:
    """The events partition that is being read."""

    def __init__(self, reader: FactReader, seen: PartitionSeen, traces: Traces, asked: Asked | None) -> None:
        self.reader = reader
        self.seen = seen
        self.traces = traces
        self.asked = asked
        self.counted = False


def _unanswered(count: int, commands: TopicPartition, tp: TopicPartition) -> str:
    # A log whose end was cut looks like one whose decider is away.
    noun = "command has" if count == 1 else "commands have"
    return (
        f"{commands}: {count:,} {noun} no answer yet. That is normal while a decider is at work or away; in a log "
        f"at rest it means that the end of {tp} is lost"
    )


def _deleted(tp: TopicPartition, first: int, counted: bool) -> Violation:
    what = "the facts before it were deleted, though facts are kept for ever: restore the log from a backup"
    if not counted:
        what += (
            "; nothing behind them counts, since each claim depends on the one before it, so nothing else of this "
            "partition was checked"
        )
    return Violation("I3", f"{tp}@{first}", what)
