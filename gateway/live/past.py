"""One lane of the log from a cursor's position on, record by record, as groups under the term rule.

A cursor names the last record that counted. That record is read again: its id must have the cursor's mark, and its
term is the claim in force at that position. Records that are not wanted are not decoded: their headers are enough to
see whether they count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.live.cursor import ALL_GIVEN, NONE, Vector, mark_of
from gateway.live.facts import Fact, Group
from schemas.events.log import WriterClaimed
from schemas.headers import read_event, read_meta
from schemas.ids import LOG_KEYS
from schemas.record import Event, EventMeta, RawRecord, UnreadableRecord
from schemas.term import NO_CLAIM, TermRule

# A cursor within a command's messages needs that command's earlier events: this many records before it are read.
LOOK_BACK = 512


class PastGone(Exception):
    """The records after a cursor can no longer be read, or the cursor is of another log."""


class Passed(NamedTuple):
    """The records of one command, read to their end; `group` is None if they are not wanted.

    `given` is the number of its messages that were sent before.
    """

    lane: int
    offset: int
    mark: int
    group: Group | None
    given: int


@dataclass(slots=True)
class _Run:
    """Adjacent records that share command, body and key."""

    name: tuple[str, str, bytes]
    is_wanted: bool
    offset: int = NONE
    mark: int = 0
    events: list[Event] = field(default_factory=list)
    given: int = 0


@dataclass(slots=True)
class PastLane:
    """Reads one lane.

    Attributes:
        lane: its number.
        after: the cursor's vector.
        wants: returns True if the records of a key are wanted.
        rule_at: makes the term rule of the lane, with a given claim in force.
        next_offset: the next offset to read.
    """

    lane: int
    after: Vector
    wants: Callable[[bytes], bool]
    rule_at: Callable[[int], TermRule] = TermRule
    next_offset: int = field(init=False)
    _rule: TermRule | None = field(init=False)
    _run: _Run | None = None
    _early: list[RawRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        place = self.place
        self._rule = self.rule_at(NO_CLAIM) if place == NONE else None
        look_back = LOOK_BACK if self._is_partial else 0
        self.next_offset = max(place - look_back, 0)

    @property
    def place(self) -> int:
        """The offset that the cursor names."""
        return self.after.offsets[self.lane]

    @property
    def _is_partial(self) -> bool:
        return self.after.lane == self.lane and self.after.given != ALL_GIVEN

    def begin_at(self, first: int, end: int) -> None:
        """Set the range of offsets that the broker has.

        Raises:
            PastGone: the broker no longer has what is needed.
        """
        there = first == 0 if self.place == NONE else first <= self.place < end
        if not there:
            raise PastGone(f"the log holds offsets {first} to {end}, but not {self.place}")
        if self._rule is None:
            self.next_offset = max(self.next_offset, first)

    def take(self, raw: RawRecord) -> Passed | None:
        """Take the next record of the lane.

        Returns:
            The command before it, if this record belongs to another one.

        Raises:
            PastGone: it is not the record that the cursor names.
        """
        if self._rule is None:
            self._find_place(raw)
            self.next_offset = raw.offset + 1
            return None
        self.next_offset = raw.offset + 1
        meta = _counting(raw, self._rule)
        if meta is None:
            return None
        name = (meta.command_id, meta.command_digest, raw.key)
        done = None
        if self._run is None or self._run.name != name:
            done = self.close()
            self._run = _Run(name, not raw.key.startswith(LOG_KEYS) and self.wants(raw.key))
        self._add(self._run, raw, meta)
        return done

    def close(self) -> Passed | None:
        """Return the command that was read last: its records end here."""
        run, self._run = self._run, None
        if run is None or run.offset == NONE:
            return None
        group = None
        if run.events:
            facts = [Fact(event) for event in run.events]
            group = Group(self.lane, run.name[2], run.name[0], run.name[1], facts, run.mark)
        return Passed(self.lane, run.offset, run.mark, group, run.given)

    def _find_place(self, raw: RawRecord) -> None:
        if raw.offset < self.place:
            if self._early and not _are_together(self._early[-1], raw):
                # Only what is of the command of the cursor's record is needed, and that is adjacent to it.
                self._early.clear()
            self._early.append(raw)
            return
        try:
            meta = read_meta(raw)
            is_claim = raw.key.startswith(LOG_KEYS) and isinstance(read_event(raw).body, WriterClaimed)
        except UnreadableRecord as error:
            raise PastGone(f"the cursor's record cannot be read: {error}") from error
        if raw.offset != self.place or mark_of(meta.event_id) != self.after.marks[self.lane]:
            raise PastGone("the cursor is from another log")
        rule = self.rule_at(raw.offset if is_claim else meta.term)
        if not rule.vouches(raw):
            raise PastGone("the cursor's record was not written by a decider")
        self._rule = rule
        if self._is_partial:
            self._begin_inside(raw, meta)

    def _begin_inside(self, raw: RawRecord, meta: EventMeta) -> None:
        run = _Run(
            (meta.command_id, meta.command_digest, raw.key), self.wants(raw.key), given=self.after.given
        )
        together = [raw]
        for earlier in reversed(self._early):
            if earlier.key != raw.key or not _is_of(earlier, meta):
                break
            together.append(earlier)
        else:
            if len(self._early) == LOOK_BACK:
                raise PastGone("the cursor is within a command with too many events")
        for each in reversed(together):
            self._add(run, each, meta)
        run.mark = mark_of(meta.event_id)
        self._run, self._early = run, []

    def _add(self, run: _Run, raw: RawRecord, meta: EventMeta) -> None:
        if run.is_wanted:
            try:
                run.events.append(read_event(raw))
            except UnreadableRecord:
                # Every reader skips it, and the decider reports it.
                return
        run.offset, run.mark = raw.offset, mark_of(meta.event_id)


def _counting(raw: RawRecord, rule: TermRule) -> EventMeta | None:
    """Return the headers of a record that counts; a claim that counts is then in force."""
    try:
        meta = read_meta(raw)
        if raw.key.startswith(LOG_KEYS):
            return meta if rule.admits(read_event(raw), raw) else None
    except UnreadableRecord:
        return None
    return meta if rule.admits_unread(meta, raw) else None


def _are_together(raw: RawRecord, following: RawRecord) -> bool:
    try:
        return raw.key == following.key and _is_of(raw, read_meta(following))
    except UnreadableRecord:
        return False


def _is_of(raw: RawRecord, meta: EventMeta) -> bool:
    try:
        found = read_meta(raw)
    except UnreadableRecord:
        return False
    same = (meta.command_id, meta.command_digest, meta.term)
    return (found.command_id, found.command_digest, found.term) == same
