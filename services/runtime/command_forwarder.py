"""Forwards commands to other partitions for the executions and the rule uses of one partition.

The work to do follows from the fold, so it is not lost with a writer: the next writer finds it there. Commands are
sent at least once, after the batch that asks for them was acknowledged, and again until their effect is seen:

1. a call that waits for a use of a standing rule asks the partition that counts the uses, until it is answered or its
   deadline has passed; the id of a question is derived from the reservation, the term and the attempt;
2. every answer is carried back once; if it is lost, the question is asked again and gets the same answer;
3. a rule to make or to suspend is sent to the definitions, always under the same id, until they show it.
"""

import asyncio
import heapq
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from log.places import TopicPartition
from schemas.actor import decider_actor
from schemas.commands import MakeRule, ReserveRuleUse, SettleReservation, SuspendRule
from schemas.envelope import Draft, Signer
from schemas.ids import (
    DECIDER_IDS,
    derived_id,
    execution_key,
    rule_uses_key,
    split_execution_key,
    split_rule_uses_key,
)
from schemas.record import OutRecord
from schemas.topics import Topics, partition_of
from services.domain.execution.deadlines import is_reserving
from services.domain.memory.standing_rules import StandingRules
from services.domain.state import Call
from services.runtime.effects import Answer, Caused, Effect, Reserving, RuleChange
from services.runtime.executions_partition import ExecutionsPartition

RETRY_S = 1.0
# For a rule that the definitions do not show yet: they may be unavailable for long.
RULE_CHANGE_RETRY_MAX_S = 60.0
IDLE_MS = 60_000
AT_ONCE = 100
CONTRADICTED = "a decision went against it"

Send = Callable[[TopicPartition, OutRecord], Awaitable[int]]

logger = logging.getLogger(__name__)


class Published(NamedTuple):
    """A forwarder's view of the definitions: the newest standing rules, and which commands on a key left a trace."""

    standing: Callable[[], StandingRules]
    answered: Callable[[bytes, str], bool]


class Job(NamedTuple):
    """Something to send at a time of a monotonic clock; `order` makes jobs comparable.

    `trace` is the trace context that its command continues; empty without one, as after a change of the writer.
    """

    at_s: float
    order: int
    attempt: int
    what: "Question | RuleChange"
    trace: str


class Question(NamedTuple):
    """A reservation that a call waits for."""

    key: bytes
    call_id: str
    reservation_id: str


def _loop_time_s() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class CommandForwarder:
    """The commands of one partition that are under way to others.

    Attributes:
        executions: the partition's fold.
        published: the definitions as read by this process.
        signer: a decider's key.
        topics, partitions: the log's topics and partition count.
        send: appends one command.
        monotonic_s: seconds of a monotonic clock.
    """

    executions: ExecutionsPartition
    published: Published
    signer: Signer
    topics: Topics
    partitions: int
    send: Send
    monotonic_s: Callable[[], float] = _loop_time_s
    _jobs: list[Job] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)
    _order: int = 0
    _answers: list[tuple[Answer, str]] = field(default_factory=list)

    def start(self) -> None:
        """Queue what earlier writers left to do. Their answers are not sent again: the calls that wait ask again."""
        executions = self.executions
        left: list[Effect] = [
            *map(Reserving, sorted(executions.reserving)),
            *executions.rule_changes.every.values(),
        ]
        self.take(Caused(effect, "") for effect in left)

    def take(self, effects: Iterable[Caused]) -> None:
        """Queue what an acknowledged batch asks for."""
        now_s = self.monotonic_s()
        for effect, trace in effects:
            if isinstance(effect, Answer):
                self._answers.append((effect, trace))
            elif isinstance(effect, RuleChange):
                self._put(effect, 1, now_s, trace)
            else:
                self._ask(effect.key, now_s, trace)

    def wait_ms(self) -> int:
        """The time until something must be sent, at most a minute."""
        if not self._jobs:
            return IDLE_MS
        return max(0, min(IDLE_MS, math.ceil((self._jobs[0].at_s - self.monotonic_s()) * 1000)))

    async def forward(self, term: int) -> None:
        """Send everything that is due: all new commands, and again those without a visible effect.

        Args:
            term: the term of the writer, whose last batch was acknowledged.
        """
        drafts = [self._settlement(*answer) for answer in self._answers]
        self._answers = []
        now_s = self.monotonic_s()
        while self._jobs and self._jobs[0].at_s <= now_s and len(drafts) < AT_ONCE:
            job = heapq.heappop(self._jobs)
            draft = self._draft(job, term)
            if draft is not None:
                drafts.append(draft)
                self._put(job.what, job.attempt + 1, now_s + _pause_s(job), job.trace)
        if drafts:
            targets = [target for target, _ in drafts]
            records = self.signer.sign([draft for _, draft in drafts])
            await asyncio.gather(*map(self.send, targets, records))

    def _ask(self, key: bytes, now_s: float, trace: str) -> None:
        for question in self._questions(key):
            if question.reservation_id not in self._known:
                self._known.add(question.reservation_id)
                self._put(question, 1, now_s, trace)

    def _put(self, what: Question | RuleChange, attempt: int, at_s: float, trace: str) -> None:
        self._order += 1
        heapq.heappush(self._jobs, Job(at_s, self._order, attempt, what, trace))

    def _questions(self, key: bytes) -> Iterator[Question]:
        for call in self._reserving(key).values():
            if call.reservation is not None:
                yield Question(key, call.call_id, call.reservation.reservation_id)

    def _reserving(self, key: bytes) -> Mapping[str, Call]:
        entry = self.executions.live.get(key)
        if entry is None or key in self.executions.unreadable:
            return {}
        return {name: entry.state.calls[name] for name in entry.state.reserving}

    def _draft(self, job: Job, term: int) -> tuple[TopicPartition, Draft] | None:
        """The command of a job; None if nothing is left to do."""
        if isinstance(job.what, Question):
            return self._reservation(job.what, job, term)
        change = job.what
        if self.published.answered(change.key, change.change_id) or change.is_done(self.published.standing()):
            return None
        if job.attempt > 1:
            logger.warning("the definitions do not show %s of rule %s yet", change.kind, change.rule_id)
        return self._rule_change(change, job.trace)

    def _reservation(self, question: Question, job: Job, term: int) -> tuple[TopicPartition, Draft] | None:
        call = self._reserving(question.key).get(question.call_id)
        asked = call.reservation if call is not None and is_reserving(call) else None
        if call is None or asked is None or asked.reservation_id != question.reservation_id:
            self._known.discard(question.reservation_id)
            return None
        tenant, project, execution_id = split_execution_key(question.key)
        body = ReserveRuleUse(
            rule_id=asked.rule_id,
            reservation_id=asked.reservation_id,
            execution_id=execution_id,
            call_id=call.call_id,
            revision=call.revision,
            digest=call.digest,
        )
        command_id = DECIDER_IDS + derived_id("reserve", asked.reservation_id, term, job.attempt)
        key = rule_uses_key(tenant, project, asked.rule_id)
        actor = decider_actor(tenant, project)
        return self._to(key), Draft(body, actor, command_id, key, trace=job.trace)

    def _settlement(self, answer: Answer, trace: str) -> tuple[TopicPartition, Draft]:
        found = split_rule_uses_key(answer.key)
        if found is None:
            raise ValueError(f"not the key of a rule's uses: {answer.key!r}")
        tenant, project, _ = found
        use = answer.use
        body = SettleReservation(
            call_id=use.call_id,
            revision=use.revision,
            reservation_id=answer.reservation_id,
            granted=use.number > 0,
            number=use.number,
            detail=use.detail,
        )
        key = execution_key(tenant, project, use.execution_id)
        command_id = DECIDER_IDS + derived_id("settle", answer.command_id)
        return self._to(key), Draft(body, decider_actor(tenant, project), command_id, key, trace=trace)

    def _rule_change(self, change: RuleChange, trace: str) -> tuple[TopicPartition, Draft]:
        body: MakeRule | SuspendRule
        if change.kind == "make":
            body = MakeRule(rule_id=change.rule_id, document=change.text)
        else:
            body = SuspendRule(rule_id=change.rule_id, reason=CONTRADICTED, evidence=change.text)
        actor = decider_actor(change.tenant, change.project)
        target = TopicPartition(self.topics.definition_commands, 0)
        return target, Draft(body, actor, change.change_id, change.key, trace=trace)

    def _to(self, key: bytes) -> TopicPartition:
        return TopicPartition(self.topics.commands, partition_of(key, self.partitions))


def _pause_s(job: Job) -> float:
    if isinstance(job.what, Question):
        return RETRY_S
    return float(min(RULE_CHANGE_RETRY_MAX_S, RETRY_S * 2 ** min(job.attempt - 1, 10)))
