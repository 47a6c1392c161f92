"""One partition of the executions, read in one pass: folded, and each recorded verdict judged twice.

1. By the definitions that were in force: the verdict must come out as it was recorded. If not, it is named.
2. By the same definitions with the candidate in place.

What people said of the call joins these as it comes along.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import NamedTuple

from ops.backtest.found import AGAINST, Found, Judged, NotJudged, NotReproduced, Side
from ops.backtest.history import Candidate, InForceHere
from ops.backtest.judging import Inputs, Moment, inputs_of, judged, looks_back
from ops.backtest.runs import Runs
from ops.backtest.sides import differing_of, recorded_side, side_of
from ops.backtest.words import Said, said_in
from schemas import codec
from schemas.events.calls import PolicyVerdictIssued
from schemas.events.log import DefinitionsAdopted, WriterClaimed
from schemas.headers import read_event, read_labels, read_meta
from schemas.ids import LOG_KEYS, TENANT_WIDE, split_execution_key
from schemas.record import Event, RawRecord, UnreadableRecord
from schemas.term import TermRule
from services.domain.execution.verdicts import Judgement

ARGUMENTS_MAX, VALUE_MAX = 400, 200
_CLAIM = codec.SUBJECTS[WriterClaimed]


class Window(NamedTuple):
    """From when until when verdicts are compared, in ms since the epoch; all of the log is folded in any case."""

    since_ms: int | None = None
    until_ms: int | None = None

    def has(self, at_ms: int) -> bool:
        """True if a moment is in it; `until` is not."""
        is_late_enough = self.since_ms is None or at_ms >= self.since_ms
        return is_late_enough and (self.until_ms is None or at_ms < self.until_ms)


class _Passed(NamedTuple):
    """A verdict that stays as it is, and of whose call people may still say something."""

    at_ms: int
    offset: int
    agent: str
    tool: str
    arguments: str
    before: Side
    after: Side


Name = tuple[bytes, str, int]  # key of the run, call and revision


class PartitionReplay:
    """Takes the records of a partition in offset order; what it finds goes to `found`."""

    def __init__(
        self,
        topic: str,
        rule: TermRule,
        here: InForceHere,
        candidate: Candidate,
        window: Window,
        found: Found,
    ) -> None:
        self._topic = topic
        self._rule = rule
        self._here = here
        self._window = window
        self._found = found
        self._runs = Runs()
        self._noted: dict[Name, list[Judged | _Passed]] = {}
        self._sides: dict[Side, Side] = {}
        self._looks_back = looks_back(candidate.document)
        project = "" if candidate.project in (None, TENANT_WIDE) else f"{candidate.project}/"
        self._prefix = f"{candidate.tenant}/{project}".encode()

    def read(self, raws: Sequence[RawRecord]) -> None:
        """Read the next records."""
        self._found.records += len(raws)
        for raw in raws:
            try:
                if self._is_foreign(raw):
                    continue
                event = read_event(raw)
            except UnreadableRecord as error:
                self._unread(raw, error)
                continue
            if self._rule.admits(event, raw):
                self._take(event)
            else:
                self._found.refused += 1

    def _is_foreign(self, raw: RawRecord) -> bool:
        """True for a record of other tenants or projects: whether it counts is in its headers, if it is no claim."""
        if raw.key.startswith((self._prefix, LOG_KEYS)):
            return False
        name, meta = read_labels(raw)
        if name == _CLAIM:
            return False
        self._count(is_event=self._rule.admits_unread(meta, raw))
        return True

    def _count(self, *, is_event: bool) -> None:
        self._found.events += is_event
        self._found.refused += not is_event

    def _unread(self, raw: RawRecord, error: UnreadableRecord) -> None:
        try:
            counts = self._rule.admits_unread(read_meta(raw), raw)
        except UnreadableRecord:
            counts = False
        if not counts:
            self._found.refused += 1
            return
        self._found.unreadable += 1
        why = f"the record cannot be read: {error}"
        self._runs.set_aside(raw.key, why)
        self._not_judged(raw.offset, raw.partition, raw.key, why)

    def _take(self, event: Event) -> None:
        body, key = event.body, event.key
        if key.startswith(LOG_KEYS):
            if isinstance(body, DefinitionsAdopted):
                self._here.adopt(body.through_offset)
            return
        self._found.events += 1
        if isinstance(body, PolicyVerdictIssued):
            if self._window.has(event.meta.at_ms):
                self._judge(event, body)
        elif (said := said_in(body, self._runs.get(key))) is not None:
            self._say(key, said, event.partition)
        self._runs.apply(event)

    def _judge(self, event: Event, body: PolicyVerdictIssued) -> None:
        here, state = self._here, self._runs.get(event.key)
        call = None if state is None else state.calls.get(body.call_id)
        if state is None or call is None or call.revision != body.revision:
            why = self._runs.aside.get(event.key, "its call is not in the log before it")
        elif here.before is None or here.after is None:
            why = here.missing
        else:
            try:
                moment = Moment(
                    event, state, call, self._inputs(event, body, call.arguments), self._runs.changes
                )
            except ValueError as error:
                why = f"what it was judged by cannot be read: {error}"
            else:
                self._check(moment, body, judged(moment, here.before, moment.inputs.history))
                self._compare(moment, body, judged(moment, here.after, moment.inputs.presumed))
                return
        self._not_judged(event.offset, event.partition, event.key, why)

    def _inputs(self, event: Event, body: PolicyVerdictIssued, arguments: str) -> Inputs:
        return inputs_of(event, body, arguments, looks_back=self._looks_back)

    def _check(self, moment: Moment, body: PolicyVerdictIssued, again: Judgement) -> None:
        differing = differing_of(body, again, moment.inputs, self._here.through)
        if not differing:
            self._found.reproduced += 1
            return
        event, state = moment.event, moment.state
        place = (
            state.project,
            state.execution_id,
            body.call_id,
            body.revision,
            event.partition,
            event.offset,
        )
        self._found.not_reproduced.append(NotReproduced(*place, differing))

    def _compare(self, moment: Moment, body: PolicyVerdictIssued, judgement: Judgement) -> None:
        event, call = moment.event, moment.call
        before, after = self._one(recorded_side(body)), self._one(side_of(judgement))
        tool = intern(call.tool)
        self._found.count(tool, event.meta.at_ms, before, after)
        noted = self._noted.setdefault((event.key, call.call_id, call.revision), [])
        if before.effect == after.effect == "allow":
            cut = call.arguments[:ARGUMENTS_MAX]
            noted.append(
                _Passed(event.meta.at_ms, event.offset, intern(call.agent), tool, cut, before, after)
            )
            return
        is_undrawn = after.adaptive == "sampled" and not moment.inputs.is_drawn
        if is_undrawn or before.effect != after.effect:
            row = _row(moment, before, after)
            row.would_pass = row.would_pass or is_undrawn
            noted.append(row)
            self._found.rows.append(row)

    def _say(self, key: bytes, said: Said, partition: int) -> None:
        noted = self._noted.get((key, said.call_id, said.revision), [])
        for index, one in enumerate(noted):
            if isinstance(one, _Passed):
                if said.word not in AGAINST:
                    continue
                noted[index] = row = _row_of(one, key, said, partition)
                self._found.rows.append(row)
            else:
                row = one
            if said.word in AGAINST or not row.word:
                row.word, row.by, row.feedback = said.word, said.by, said.feedback[:VALUE_MAX]

    def _one(self, side: Side) -> Side:
        """The one object for equal sides: there are few, and many verdicts."""
        return self._sides.setdefault(side, side)

    def _not_judged(self, event_offset: int, partition: int, key: bytes, why: str) -> None:
        place = (self._topic, partition, event_offset, key.decode(errors="replace"))
        self._found.not_judged.append(NotJudged(*place, why[:VALUE_MAX]))


def _row(moment: Moment, before: Side, after: Side) -> Judged:
    event, state, call = moment.event, moment.state, moment.call
    return Judged(
        project=state.project,
        execution_id=state.execution_id,
        call_id=call.call_id,
        revision=call.revision,
        at_ms=event.meta.at_ms,
        partition=event.partition,
        offset=event.offset,
        agent=intern(call.agent),
        tool=intern(call.tool),
        arguments=call.arguments[:ARGUMENTS_MAX],
        before=before,
        after=after,
        would_pass=after.effect == "allow",
    )


def _row_of(passed: _Passed, key: bytes, said: Said, partition: int) -> Judged:
    """The row of a call that passes before and after, once people are against it."""
    _, project, execution_id = split_execution_key(key)
    return Judged(
        project=project,
        execution_id=execution_id,
        call_id=said.call_id,
        revision=said.revision,
        at_ms=passed.at_ms,
        partition=partition,
        offset=passed.offset,
        agent=passed.agent,
        tool=passed.tool,
        arguments=passed.arguments,
        before=passed.before,
        after=passed.after,
        would_pass=True,
    )
