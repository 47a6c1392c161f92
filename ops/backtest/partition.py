"""One partition of the executions, read in one pass: folded, and each recorded verdict judged twice.

1. By the definitions that were in force: the verdict must come out as it was recorded. If not, it is named.
2. By the same definitions with the candidate in place; if inputs are not recorded, also with the most permissive.

What people said of the call joins these as it comes along.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from sys import intern
from typing import NamedTuple

from log.errors import LogFromNewerVersion
from ops.backtest.counting import check_counts
from ops.backtest.found import AGAINST, Found, Judged, NotJudged, NotReproduced, Side
from ops.backtest.history import Candidate, InForceHere
from ops.backtest.judging import Inputs, Moment, inputs_of, judged, looks_back
from ops.backtest.passing import Passing, passing_of
from ops.backtest.runs import Runs
from ops.backtest.sides import causes_of, differing_of, recorded_side, side_of
from ops.backtest.trust import Rescoring
from ops.backtest.words import Said, said_in
from ops.fork.naming import PREFIX, is_fork
from schemas import codec
from schemas.events.calls import PolicyVerdictIssued
from schemas.events.holds import HoldOpened
from schemas.events.log import DefinitionsAdopted, WriterClaimed
from schemas.headers import read_event, read_labels, read_meta
from schemas.ids import LOG_KEYS, TENANT_WIDE, split_execution_key
from schemas.record import Event, RawRecord, UnreadableRecord
from schemas.term import TermRule
from services.domain.definitions import Definitions
from services.domain.execution.verdicts import Judgement

ARGUMENTS_MAX, VALUE_MAX = 400, 200
_CLAIM, _VERDICT = codec.SUBJECTS[WriterClaimed], codec.SUBJECTS[PolicyVerdictIssued]


class Window(NamedTuple):
    """From when until when verdicts are compared, in ms since the epoch; all of the log is folded in any case."""

    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if no moment is in it."""
        return self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms

    def has(self, at_ms: int) -> bool:
        """True if a moment is in it; `until` is not."""
        is_late_enough = self.since_ms is None or at_ms >= self.since_ms
        return is_late_enough and (self.until_ms is None or at_ms < self.until_ms)


class _Passed(NamedTuple):
    """A verdict that changes nothing, whose call would pass, and of which people may still say something."""

    at_ms: int
    offset: int
    agent: str
    tool: str
    arguments: str
    before: Side
    after: Side
    presumed: bool


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
        rescoring: Rescoring | None = None,
    ) -> None:
        self._topic = topic
        self._rule = rule
        self._here = here
        self._window = window
        self._found = found
        self._rescoring = rescoring
        self._runs = Runs()
        self.counted = self.refused = 0
        self._doubts: set[str] = set()
        self._noted: dict[Name, list[Judged | _Passed]] = {}
        self._sides: dict[Side, Side] = {}
        self._looks_back = looks_back(candidate.document)
        project = "" if candidate.project in (None, TENANT_WIDE) else f"{candidate.project}/"
        self._prefix = f"{candidate.tenant}/{project}".encode()
        self._leaves_forks = not project
        self._forked = f"{candidate.tenant}/{PREFIX}".encode()
        self._forks: set[bytes] = set()

    def read(self, raws: Sequence[RawRecord]) -> None:
        """Read the next records."""
        self._found.records += len(raws)
        self._rule.foresee(raws)
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
                self._refuse()

    def _is_foreign(self, raw: RawRecord) -> bool:
        """True for a record of other tenants, projects or forks.

        Whether such a record counts is in its headers, if it is no claim.
        """
        is_fork = self._is_fork(raw.key)
        if raw.key.startswith((self._prefix, LOG_KEYS)) and not is_fork:
            return False
        name, meta = read_labels(raw)
        if name == _CLAIM:
            return False
        if self._rule.admits_unread(meta, raw):
            if is_fork and name == _VERDICT and self._window.has(meta.at_ms):
                self._forks.add(raw.key)
            self._found.events += 1
            self.counted += 1
        else:
            self._refuse()
        return True

    def _is_fork(self, key: bytes) -> bool:
        """True for a run of the tenant that a fork has made, unless the backtest is of the fork's own project."""
        if not self._leaves_forks or not key.startswith(self._forked):
            return False
        with suppress(ValueError):  # A key of another form is no run's.
            _, project, execution_id = split_execution_key(key)
            return is_fork(project, execution_id)
        return False

    def _refuse(self) -> None:
        self.refused += 1
        self._found.refused += 1

    def _unread(self, raw: RawRecord, error: UnreadableRecord) -> None:
        try:
            counts = self._rule.admits_unread(read_meta(raw), raw)
        except UnreadableRecord:
            counts = False
        if not counts:
            self._refuse()
            return
        if raw.key.startswith(LOG_KEYS):
            # Which writer and which definitions are in force from here on is not known: the decider stops, too.
            what = f"The record of {raw.key.decode()} at partition {raw.partition}, offset {raw.offset}"
            raise LogFromNewerVersion(what, str(error))
        self._found.unreadable += 1
        self.counted += 1
        why = f"the record cannot be read: {error}"
        self._runs.set_aside(raw.key, why)
        self._not_judged(raw.offset, raw.partition, raw.key, why)

    def _take(self, event: Event) -> None:
        body, key = event.body, event.key
        self.counted += not isinstance(body, WriterClaimed)
        if key.startswith(LOG_KEYS):
            if isinstance(body, DefinitionsAdopted):
                self._here.adopt(body.through_offset)
            return
        self._found.events += 1
        if isinstance(body, PolicyVerdictIssued):
            if self._window.has(event.meta.at_ms):
                self._judge(event, body)
        elif isinstance(body, HoldOpened):
            if body.cause == "outcome_unknown":
                self._doubts.add(body.hold_id)
        elif (said := said_in(body, self._doubts)) is not None:
            self._say(key, said, event.partition)
        self._runs.apply(event)

    def _judge(self, event: Event, body: PolicyVerdictIssued) -> None:
        here, state = self._here, self._runs.get(event.key)
        call = None if state is None else state.calls.get(body.call_id)
        if state is None or call is None or call.revision != body.revision:
            why = self._runs.aside.get(event.key, "its call is not in the log before it")
        elif call.probe is not None:
            # No agent proposed it and it never runs, so neither its verdict nor what people said of it is history.
            self._found.planted += 1
            return
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
                self._compare(moment, body, here.after)
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
        self._found.differ(NotReproduced(*place, differing))

    def _compare(self, moment: Moment, body: PolicyVerdictIssued, definitions: Definitions) -> None:
        event, call = moment.event, moment.call
        moment = self._rescored(moment, definitions)
        judgement = judged(moment, definitions, moment.inputs.presumed)
        before, after = self._one(recorded_side(body)), self._one(side_of(judgement))
        is_another = not self._here.is_same or self._rescoring is not None
        looks_back = self._looks_back and is_another
        passing = passing_of(moment, judgement, definitions, looks_back=looks_back)
        tool = intern(call.tool)
        is_changed, policies = before.effect != after.effect, definitions.policies
        causes = causes_of(after, policies, moment.state.tenant) if is_changed else ()
        self._found.by_candidate += self._here.judges(moment.state, call.agent)
        self._found.count(tool, event.meta.at_ms, before, after, causes)
        if is_changed:
            row = _row(moment, before, after, passing)
            self._found.rows.append(row)
            one: Judged | _Passed = row
        elif passing.would:
            cut = _cut(call.arguments)
            place = (event.meta.at_ms, event.offset, intern(call.agent), tool, cut)
            one = _Passed(*place, before, after, passing.is_presumed)
        else:
            return
        self._noted.setdefault((event.key, call.call_id, call.revision), []).append(one)

    def _rescored(self, moment: Moment, definitions: Definitions) -> Moment:
        """The moment with the trust of another function, if one is tried."""
        if self._rescoring is None:
            return moment
        state, call = moment.state, moment.call
        people = definitions.people.of(state.tenant, state.project)
        tool = (state.tenant, state.project, call.agent, call.tool)
        inputs = self._rescoring.of(tool, moment.inputs, moment.event.meta.at_ms, people)
        return replace(moment, inputs=inputs, facts={})

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
            row.say(said.word, said.by, said.feedback[:VALUE_MAX])

    def _one(self, side: Side) -> Side:
        """The one object for equal sides: there are few, and many verdicts."""
        return self._sides.setdefault(side, side)

    def _not_judged(self, event_offset: int, partition: int, key: bytes, why: str) -> None:
        place = (self._topic, partition, event_offset, key.decode(errors="replace"))
        self._found.leave(NotJudged(*place, why[:VALUE_MAX]))

    def end(self) -> None:
        """Note what is left at the end of the partition.

        Raises:
            NothingCountsError: it has records, and none of them counts.
        """
        self._found.set_aside += len(self._runs.aside)
        self._found.forks += len(self._forks)
        check_counts(self._topic, self._rule, self.counted, self.refused)


def _cut(arguments: str) -> str:
    """Arguments as they are listed; what is left off is marked."""
    return arguments if len(arguments) <= ARGUMENTS_MAX else f"{arguments[:ARGUMENTS_MAX]}…"


def _row(moment: Moment, before: Side, after: Side, passing: Passing) -> Judged:
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
        arguments=_cut(call.arguments),
        before=before,
        after=after,
        would_pass=passing.would,
        presumed=passing.is_presumed,
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
        presumed=passed.presumed,
    )
