"""Requests to the decider: one command and one answer, however often and by however many callers it is requested.

For each command, in this order:
1. if its answer is still in memory, it is returned at once;
2. if it is under way, the caller joins the wait, and it is not sent again;
3. the wait is registered, then the command is sent;
4. if no trace arrives for a moment, the views are queried for an earlier answer: the decider leaves no second trace
   of a repeat;
5. if an answer is valid only while the state does not change (`Ask.anew`), an answer from before the request is not
   returned: the command is sent to the decider once more, under an id of its own.
"""

from __future__ import annotations

import asyncio
import hmac
import uuid
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from gateway.asking.outbox import Outbox, QueuedCommand
from gateway.asking.tracing import traced
from gateway.live.live import DEFINITIONS_LANE, Live, lane_of
from gateway.live.outcome import Outcome, Refused, outcome_of
from gateway.live.waiters import Answered, Wait, Waited, Wanted, reused
from gateway.problems import Problem
from schemas import codec
from schemas.actor import Actor
from schemas.command_rules import unfit
from schemas.envelope import Draft, command_digest
from schemas.ids import derived_id, secret_id
from schemas.message import Message
from schemas.refusals import Refusal
from schemas.topics import DEFINITION_COMMANDS, partition_of
from vitals import tracing

# A trace takes milliseconds; if it has not arrived by then, it may have been left long ago.
LOOK_AFTER_S = 0.2
SWEEP_S = 0.025
# Without waits; a new one is checked soon enough.
SWEEP_IDLE_S = 0.1
ATTEMPTS_MAX = 64
# The error of the log's time here is at most this, and every lease is longer.
TIME_UNSURE_MS = 1_000
# Refusals that say when to repeat the request, and so are not permanent answers.
PASSING = frozenset({Refusal.QUOTA, Refusal.UNAVAILABLE})


class CommandName(NamedTuple):
    """The source of a command's id.

    The id is derived from `parts`; None: it is fresh. With an idempotency key the first answer is permanent
    (`keyed`), unless it was to repeat the request later. Without one, the id of a body that names its own subject is
    derived from that body, so that a repeat is the same command; but its refusals are not kept, since it may be
    accepted later.
    """

    parts: tuple[str, ...] | None
    keyed: bool = False

    def asks_again(self, refused: Refused) -> bool:
        """Return True if a refusal permits another attempt under another id.

        Never if the command made deciders crash: each attempt could crash as many again.
        """
        if refused.given_up:
            return False
        return refused.code in PASSING if self.keyed else refused.code is not Refusal.DUPLICATE


@dataclass(frozen=True, slots=True)
class CommandIds:
    """Makes the ids of commands: the same at every gateway that has the secret, and unpredictable for everyone else.

    Otherwise anyone who can produce commands could use the id of a person's next command in advance, and that command
    would be refused as another body under a used id. The same holds for resources that a gateway names (`named`).
    """

    secret: bytes

    @classmethod
    def of_gateways(cls, shared: bytes) -> CommandIds:
        """Derive the secret from one that the gateways share for several purposes."""
        return cls(hmac.digest(shared, b"placet:command-ids", "sha256"))

    def named(self, *parts: str) -> str:
        """Return the id of a resource that is opened for a request, from what all repeats of the request have."""
        return secret_id(self.secret, derived_id("resource", *parts))

    def id_of(self, name: CommandName, digest: str, attempt: int) -> str:
        """Return the id of the command with this body digest."""
        if name.parts is None:
            return str(uuid.uuid4())
        body = () if name.keyed else (digest,)
        public = derived_id(*name.parts, *body, *([attempt] if attempt else []))
        return secret_id(self.secret, public)


def caller_of(actor: Actor) -> tuple[str, ...]:
    """Return by what a caller is told from every other: two agents can have one subject."""
    return actor.tenant, actor.project, actor.subject, actor.agent or ""


def name_of(
    actor: Actor, route: str, key: str | None, subjects: tuple[str, ...] | None = None
) -> CommandName:
    """Choose the source of a command's id.

    Args:
        actor: the caller.
        route: the concrete path or message that the command arrived by.
        key: its idempotency key or `ref`.
        subjects: the ids in its body that its client chose, or None.
    """
    # The answer to an earlier command of the same name is given without asking the decider: so it must be the
    # caller's own. Somebody else's repeat is another command, of which the decider says whether they may send it.
    if key:
        return CommandName((*caller_of(actor), route, key), keyed=True)
    if subjects is not None:
        return CommandName((*caller_of(actor), route, *subjects))
    return CommandName(None)


class Ask(NamedTuple):
    """A command for the decider.

    `anew` is True if an acceptance from before the request is no proof of the present state: it is confirmed first.
    `dwell_ms` is sent with a decision and is not part of its body, which must be the same at another gateway.
    """

    body: Message
    actor: Actor
    key: bytes
    topic: str
    partitions: int
    name: CommandName
    anew: bool = False
    dwell_ms: int | None = None


class _Repeatable(NamedTuple):
    """A command that may be sent again under the id of its next attempt."""

    ask: Ask
    attempt: int
    context: Context | None


class Answers(Protocol):
    """The answered commands in the views."""

    async def answers(self, wanted: list[Wanted]) -> dict[Wanted, Outcome]:
        """Return the outcomes of commands as far as known; else the outcome of another command with the same id."""
        ...


@dataclass(slots=True)
class Asker:
    """Sends commands to the decider for one gateway."""

    live: Live
    outbox: Outbox
    answers: Answers
    ids: CommandIds
    _again: dict[Waited, _Repeatable] = field(default_factory=dict, init=False)

    def ask(self, ask: Ask, answered: Answered, timeout_s: float) -> str:
        """Send a command; `answered` is called once, perhaps before this returns.

        It gets the outcome; a problem if the command could not be sent or its id is used for another body; or None if
        the command is in the log without an answer in time: then it may still be decided.

        Returns:
            The command's id.
        """
        if ask.anew and ask.name.parts is not None:
            answered = self._confirming(ask, answered, timeout_s)
        return self._ask(ask, answered, timeout_s, 0)

    async def answer(self, ask: Ask, timeout_s: float) -> Outcome | None:
        """Send a command and wait; None if it is in the log without an answer in time.

        Raises:
            Problem: the command could not be sent, or its id is used for another body.
        """
        return await awaited(self.send(ask, timeout_s))

    def send(self, ask: Ask, timeout_s: float) -> asyncio.Future[Outcome | Problem | None]:
        """Send a command, after those that were sent before; return its answer to come (`awaited`)."""
        future: asyncio.Future[Outcome | Problem | None] = asyncio.get_running_loop().create_future()

        def answered(outcome: Outcome | Problem | None) -> None:
            if not future.done():
                future.set_result(outcome)

        self.ask(ask, answered, timeout_s)
        return future

    async def run(self) -> None:
        """Check the waits without a trace, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S if len(self.live.waiters) else SWEEP_IDLE_S)
            if len(self.live.waiters):
                await self._sweep()

    def _ask(self, ask: Ask, answered: Answered, timeout_s: float, attempt: int) -> str:
        value = codec.encode(ask.body)
        digest = command_digest(value)
        command_id = self.ids.id_of(ask.name, digest, attempt)
        if (problem := unfit(ask.body)) is not None:
            # The same refusal as the decider's, by the same limits and forms, but without a trace in the log.
            answered(Problem(*problem))
            return command_id
        while (outcome := self._remembered(ask.key, command_id, digest)) is not None:
            answer = _same_body(outcome, digest, ask.key)
            if not _may_ask_again(ask, attempt, answer):
                answered(answer)
                return command_id
            attempt += 1
            command_id = self.ids.id_of(ask.name, digest, attempt)
        self._wait(ask, Waited(command_id, digest), value, answered, timeout_s, attempt)
        return command_id

    def _ask_within(
        self, context: Context | None, ask: Ask, answered: Answered, timeout_s: float, attempt: int
    ) -> None:
        """Send one more command of a request, in its trace: the tail and the sweep, which call this, are in none."""
        if context is None:
            self._ask(ask, answered, timeout_s, attempt)
        else:
            context.run(self._ask, ask, answered, timeout_s, attempt)

    def _confirming(self, ask: Ask, answered: Answered, timeout_s: float) -> Answered:
        """Wrap `answered`: it gets an acceptance from before now only after the decider has confirmed it."""
        asked_at_ms = self.live.time.now_ms() if self.live.time.known else None
        until = asyncio.get_running_loop().time() + timeout_s
        context = _traced_context()

        def confirmed(outcome: Outcome | Problem | None) -> None:
            if not isinstance(outcome, Outcome) or not _is_acceptance(outcome):
                answered(outcome)
            elif outcome.old or asked_at_ms is None or outcome.at_ms < asked_at_ms - TIME_UNSURE_MS:
                left_s = max(until - asyncio.get_running_loop().time(), 0.0)
                self._ask_within(context, ask._replace(name=CommandName(None)), answered, left_s, 0)
            else:
                answered(outcome)

        return confirmed

    def _wait(
        self, ask: Ask, name: Waited, value: bytes, answered: Answered, timeout_s: float, attempt: int
    ) -> None:
        now = asyncio.get_running_loop().time()
        wait = self.live.waiters.get(name)
        if wait is not None:
            if wait.key != ask.key:
                answered(reused())
                return
            wait.answered.append(answered)
            wait.until = max(wait.until, now + timeout_s)
            return
        actor = ask.actor
        wait = Wait(
            name, ask.key, _lane(ask), actor.tenant, actor.project, now + timeout_s, now + LOOK_AFTER_S
        )
        wait.answered.append(answered)
        self.live.waiters.add(wait)
        if ask.name.parts is not None:
            self._again[name] = _Repeatable(ask, attempt, _traced_context())
            wait.answered.append(self._forget(name))
        draft = Draft(ask.body, actor, name.command_id, ask.key, ask.dwell_ms, value)
        left, failed = partial(self._left, wait), partial(self._failed, name)
        queued = QueuedCommand(draft, ask.topic, ask.partitions, left, failed)
        self.outbox.put(queued if tracing.spans is None else traced(tracing.spans, queued))

    def _forget(self, name: Waited) -> Answered:
        def forget(_: Outcome | Problem | None) -> None:
            self._again.pop(name, None)

        return forget

    @staticmethod
    def _left(wait: Wait) -> None:
        wait.stands = True

    def _failed(self, name: Waited, reason: str) -> None:
        detail = f"the command could not be sent to the log ({reason}): repeat it with the same id"
        self.live.waiters.answer(name, Problem(Refusal.UNAVAILABLE, detail, retry_after=1))

    def _remembered(self, key: bytes, command_id: str, digest: str) -> Outcome | None:
        group = self.live.ring.of_command(key, command_id, digest)
        return None if group is None else outcome_of(group.events(), old=True)

    async def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        waiters = self.live.waiters
        if wanted := waiters.to_look_up(now):
            for name, outcome in (await self.answers.answers(wanted)).items():
                for wait in waiters.of_id(name.command_id):
                    if wait.key == name.key:
                        self._answered_long_ago(wait, outcome)
        for wait in waiters.overdue(now):
            # A command that may still be lost is never answered as if it were waiting for a verdict.
            waiters.answer(wait.name, None if wait.stands else _not_taken())

    def _answered_long_ago(self, wait: Wait, outcome: Outcome) -> None:
        if outcome.last_offset >= self.live.read_through[wait.lane]:
            # The views are ahead of the tail, which will read this answer. Returned now, it would be combined with
            # the tail's older row of its subject: a consumption with a call that is still released.
            return
        name = wait.name
        again = self._again.get(name)
        answer = _same_body(outcome, name.digest, wait.key)
        if again is None or not _may_ask_again(again.ask, again.attempt, answer):
            self.live.waiters.answer(name, answer)
            return
        left_s = max(wait.until - asyncio.get_running_loop().time(), 0.0)

        def answered(later: Outcome | Problem | None) -> None:
            self.live.waiters.answer(name, later)

        self._ask_within(again.context, again.ask, answered, left_s, again.attempt + 1)


async def awaited(answer: asyncio.Future[Outcome | Problem | None]) -> Outcome | None:
    """Return the answer of a command that was sent; None if it is in the log without an answer in time.

    Raises:
        Problem: the command could not be sent, or its id is used for another body.
    """
    outcome = await answer
    if isinstance(outcome, Problem):
        raise outcome
    return outcome


def _traced_context() -> Context | None:
    """Return the context of the request in hand, with its trace; None while nothing is traced."""
    return None if tracing.spans is None else copy_context()


def _not_taken() -> Problem:
    detail = (
        "Kafka has not accepted the command yet, but may still do so; it is carried out once if it is repeated"
        " with the same ids and the same idempotency key"
    )
    return Problem(Refusal.UNAVAILABLE, detail, retry_after=1)


def _lane(ask: Ask) -> int:
    """Return the lane in which the tail reads a command's outcome."""
    if ask.topic.endswith(DEFINITION_COMMANDS):
        return DEFINITIONS_LANE
    return lane_of(partition_of(ask.key, ask.partitions))


def _may_ask_again(ask: Ask, attempt: int, answer: Outcome | Problem) -> bool:
    refused = None if isinstance(answer, Problem) else answer.refused
    return refused is not None and ask.name.asks_again(refused) and attempt < ATTEMPTS_MAX


def _is_acceptance(outcome: Outcome) -> bool:
    return outcome.refused is None or outcome.refused.code is Refusal.DUPLICATE


def _same_body(outcome: Outcome, digest: str, key: bytes) -> Outcome | Problem:
    return outcome if outcome.digest == digest and outcome.key == key else reused()
