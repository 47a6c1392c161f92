"""One events partition from its first record to its last: time, versions, definitions, and every execution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ops.checker.asked import Asked
from ops.checker.calls import PERMITTED, Runs, RunSeen
from ops.checker.facts import LOG_EVENTS, Fact
from ops.checker.holds import HOLD_EVENTS, check_consumed, hold_event
from ops.checker.published import Published
from ops.checker.rules import is_uses_key
from ops.checker.run_facts import RunFacts
from ops.checker.scratch import Shelf
from ops.checker.turns import PERMITTED_TURNS, check_resumption, turn_event, user_joined
from ops.checker.violations import Violation

CLOSING = {"ExecutionCompleted": "completed", "ExecutionFailed": "failed", "ExecutionCancelled": "cancelled"}
LIFECYCLE = {
    "ExecutionStarted": "running",
    "ExecutionPaused": "paused",
    "ExecutionResumed": "running",
    **CLOSING,
}
CLOSED = frozenset(CLOSING.values())
# What cannot follow the end of its execution.
NOT_AFTER_THE_END = frozenset({"ToolCallProposed", "GrantConsumed", "MessageSent", *LIFECYCLE})
# So many writers, and children of the one that gives it up, must have tried a command in vain before that.
TRIED_ALONE_MIN = 3
TIMER = "placet:timer"
REFUSALS = frozenset({"CommandRefused", "DecisionRefused", "CommandAbandoned"})
# Key, command id and call.
Place = tuple[str, str, str]


@dataclass(slots=True)
class PartitionSeen:
    """What the counting facts of one partition add up to.

    Attributes:
        published: the definitions topic.
        asked: the commands partition that this one answers; None where it is not known.
        report: takes what must not be.
        runs: all executions.
        versions: the last version of each aggregate.
        of_executions: whether the aggregates are executions, whose first event is their start.
        now_ms: the log's time.
    """

    published: Published
    asked: Asked | None
    report: Callable[[Violation], None]
    runs: Runs
    versions: Shelf[int]
    of_executions: bool = True
    now_ms: int = 0
    adopted_through: int = -1
    _to_tell: Place | None = None
    _tried_alone: dict[int, set[int]] = field(default_factory=dict)

    def read(self, fact: Fact) -> None:
        """Take the next counting fact of the partition."""
        self._check_told(fact)
        self._check_time(fact)
        if fact.type in LOG_EVENTS:
            self._log_event(fact)
            return
        self._check_version(fact)
        self._check_tenant(fact)
        if fact.type == "CommandAbandoned":
            self._check_abandoned(fact)
        self._event(fact)

    def _check_told(self, fact: Fact) -> None:
        """The end of a planted call's hold is followed at once by what tells of it, in the same batch.

        Where the log ends in between, that may be yet to come: it is wrong at rest only (`check_rest`).
        """
        awaited, self._to_tell = self._to_tell, None
        if awaited is None:
            return
        found = (fact.key, fact.command_id, getattr(fact.body, "call_id", "")), fact.type
        if found != (awaited, "ProbeEnded"):
            self._say("I4", fact, "the hold of a planted call ended, and what it was is not told", *awaited)

    def _check_time(self, fact: Fact) -> None:
        if fact.type == "WriterClaimed":
            # A claim is written before it is known what it follows: its time decides nothing.
            return
        appended_ms = self.asked.appended_ms(fact.command_offset) if self.asked else None
        if fact.at_ms < self.now_ms:
            self._say("I5", fact, "the log's time ran backwards", self.now_ms, fact.at_ms)
        elif (
            self.asked is not None
            and self.of_executions
            and appended_ms is not None
            and fact.at_ms != max(appended_ms, self.now_ms)
        ):
            what = "decided at another time than the log's"
            evidence = (fact.key, str(appended_ms), str(fact.at_ms))
            # Whether the broker's clock could be right then is known once everything was read.
            self.asked.doubt(fact.command_offset, Violation("I5", fact.where, what, evidence))
        self.now_ms = max(self.now_ms, fact.at_ms)

    def _check_version(self, fact: Fact) -> None:
        """An aggregate's events count from 1 without a gap, or their writer had another state than the log's."""
        begins = fact.type == "ExecutionStarted" or not self.of_executions or is_uses_key(fact.key)
        seen = self.versions.get(fact.key)
        if seen is None:
            if not begins:
                return
            seen = 0
        run = self.runs.facts.get(fact.key) if self.of_executions else None
        forgotten = run is not None and run.state in CLOSED and fact.type in REFUSALS and fact.version == 1
        if fact.version != seen + 1 and not forgotten:
            self._say("I6", fact, "the aggregate's version does not follow the last one", seen, fact.version)
        if not forgotten:
            self.versions.put(fact.key, fact.version)

    def _check_tenant(self, fact: Fact) -> None:
        if fact.tenant and fact.key.split("/")[0] != fact.tenant:
            self._say("I9", fact, "an event of one tenant under another tenant's key", fact.tenant)

    def _check_abandoned(self, fact: Fact) -> None:
        """A command is no poison because one writer ended beside it: it must have been tried in vain so often.

        Each writer of an earlier term that says which command it dares counts once. Trials in children leave nothing
        in the log but their number, which counts only where their writer had said so as well.
        """
        body = fact.body
        dared = self._tried_alone.get(body.command_offset, set())
        tried = len(dared - {fact.term})
        trials = body.trials
        if trials < 0:
            # A version that tried in children already, and did not say how many of the attempts these were.
            trials = body.attempts - tried
        if fact.term in dared:
            tried += max(trials, 0)
        if min(tried, body.attempts) < TRIED_ALONE_MIN:
            self._say("I3", fact, "a command was given up before it had been tried alone so often", tried)

    def _log_event(self, fact: Fact) -> None:
        if fact.type == "WriterAlive" and fact.body.attempting >= 0:
            self._tried_alone.setdefault(fact.body.attempting, set()).add(fact.term)
        if fact.type != "DefinitionsAdopted":
            return
        body = fact.body
        if body.through_offset <= self.adopted_through:
            self._say("I6", fact, "older definitions were adopted again", self.adopted_through)
        if self.published.record_ids.get(body.through_offset) != body.through_record_id:
            self._say("I7", fact, "adopted a definition that does not count", body.through_offset)
        self.adopted_through = body.through_offset

    def _event(self, fact: Fact) -> None:
        run = self.runs.facts.get(fact.key)
        if fact.type == "ExecutionStarted":
            if run is not None:
                self._say("I4", fact, "an execution was started twice")
                return
            tenant, project, _ = fact.key.split("/")
            body = fact.body
            begun = RunFacts(
                tenant,
                project,
                state="running",
                started_by=body.by,
                user=body.user,
                agent=body.agent,
                started_command=fact.command_id,
                opened_for=body.probe,
                idle_ms=body.idle_ms,
                active_at_ms=fact.at_ms,
            )
            self.runs.facts.put(fact.key, begun)
            return
        if fact.type in REFUSALS or not self.of_executions:
            return
        if is_uses_key(fact.key):
            self.published.rules.use(fact, self.adopted_through, self.report)
            return
        if run is None:
            self._say("I6", fact, "an event of an execution that was never started")
            return
        seen = RunSeen(fact.key, run, self.runs, self.published, self.report, self.adopted_through)
        self._event_of(seen, fact)
        if seen.to_tell:
            self._to_tell = fact.key, fact.command_id, seen.to_tell

    def _event_of(self, run: RunSeen, fact: Fact) -> None:
        check_resumption(run, fact)
        if run.facts.state in CLOSED and fact.type in NOT_AFTER_THE_END:
            self._say("I4", fact, f"{fact.type} in an execution that is {run.facts.state}")
        if run.facts.state == "paused" and fact.type == "GrantConsumed":
            self._say("I5", fact, "consumed in an execution that is paused")
        if fact.type == "GrantConsumed":
            check_consumed(run, fact)
        if fact.type in PERMITTED:
            run.call(fact)
        elif fact.type in HOLD_EVENTS:
            hold_event(run, fact)
        elif fact.type in PERMITTED_TURNS:
            turn_event(run, fact)
        elif fact.type == "UserJoined":
            user_joined(run, fact)
        elif fact.type == "ReservationSettled":
            self.published.rules.settled(fact)
        elif fact.type == "RuleContradicted":
            run.facts.memory.pop(fact.body.rule_id, None)
        elif fact.type == "RuleAsked":
            run.rule_asked(fact)
        if fact.type in CLOSING:
            self._check_end(run.facts, fact)
        run.facts.active_at_ms = fact.at_ms
        run.facts.state = LIFECYCLE.get(fact.type, run.facts.state)

    def _check_end(self, run: RunFacts, fact: Fact) -> None:
        if run.open_turns:
            self._say("I4", fact, "an execution ended before its turns", *run.open_turns)
        is_by_itself = fact.type == "ExecutionCompleted" and fact.body.by == TIMER
        if is_by_itself and (run.idle_ms is None or fact.at_ms < run.active_at_ms + run.idle_ms):
            self._say("I5", fact, "an execution ended by itself early", run.active_at_ms, run.idle_ms)

    def _say(self, invariant: str, fact: Fact, what: str, *evidence: object) -> None:
        self.report(Violation(invariant, fact.where, what, (fact.key, *map(str, evidence))))
