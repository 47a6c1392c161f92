"""A request on its way to an answer, the same for REST and the WebSocket, and for whatever is asked.

1. It is planned from the rows at hand. Where one is missing, `Missing` says which: it is fetched, and planned again.
   Where something must be done first that takes its time, `Unprepared` does it and gives the plan.
2. The plan says what to ask the decider, and it is asked.
3. The plan says what the answer looks like: at once where it can be told from what is at hand, else in time.

`perform` does all of it. A door that must not wait between its messages (a socket) takes the same steps one by one:
`begun`, `at_once` and `in_time`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import orjson

from gateway.asking.asker import Ask, Asker
from gateway.asking.undecided import Undecided
from gateway.checking.desk import DefinitionDesk
from gateway.identity.grants import Grants
from gateway.live.live import Live
from gateway.live.outcome import Outcome
from gateway.live.reader import Reader, Subject
from gateway.looks import Looks
from gateway.policy import GatewayPolicy
from gateway.problems import Problem, not_found
from gateway.pushes.catching_up import CatchUps
from gateway.shares.quotas import ProposalQuotas
from gateway.shares.work import Work
from gateway.vault.desk import Desk
from projections.folds.rows import Row
from schemas.actor import Actor
from schemas.ids import execution_key
from schemas.refusals import Refusal
from schemas.topics import Topics

ANSWER_TIMEOUT_S = 10.0
FETCHES_MAX = 8

# The parsed body, read only when it is its turn: that a thing does not exist or may not be touched comes first.
Given = Callable[[], dict[str, Any]]


class Reply(NamedTuple):
    """An answer: HTTP status and JSON body."""

    status: int
    body: bytes


class Missing(Exception):
    """A row that is needed is not at hand."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(str(subject))
        self.subject = subject


class Unprepared(Exception):
    """Something must be done first that takes its time; then there is a plan.

    Attributes:
        prepare: does it, and gives the plan. It needs no further row.
    """

    def __init__(self, prepare: Callable[[], Awaitable[Plan]]) -> None:
        super().__init__("unprepared")
        self.prepare = prepare


class Plan(NamedTuple):
    """What to ask, and how to answer.

    Attributes:
        ask: the command.
        subject: what the answer shows, fetched if it is not at hand; None where the outcome says it all.
        render: the answer to an accepted command, from the row of `subject`; from None where there is none.
        unanswered: the answer when nobody has answered in time; None: 503 unavailable.
        refused: what a refusal of the decider is told as, where not as it stands.
        timeout_s: how long to wait for the decider.
        deliver: the answer in place of `render`, where it takes its time.
        delivers: for which rows it does; None: for all.
        is_early: whether the subject's row does not say yet what was asked, and soon will by itself: the answer waits
            for that, at most `timeout_s`.
    """

    ask: Ask
    subject: Subject | None
    render: Callable[[Row, Outcome], Reply]
    unanswered: Callable[[], Reply] | None = None
    refused: Callable[[Problem], Problem] | None = None
    timeout_s: float = ANSWER_TIMEOUT_S
    deliver: Callable[[Row, Outcome], Awaitable[Reply]] | None = None
    is_early: Callable[[Row], bool] | None = None
    delivers: Callable[[Row], bool] | None = None

    def delivered(self, row: Row | None) -> Callable[[Row, Outcome], Awaitable[Reply]] | None:
        """What makes the answer of a row, where it takes its time."""
        return self.deliver if self.delivers is None or self.delivers(row) else None

    def refusal(self, outcome: Outcome) -> Problem | None:
        """What a refused command is told as; None where it was accepted or done before."""
        problem = refusal_of(outcome)
        return problem if problem is None or self.refused is None else self.refused(problem)

    def waits(self, row: Row | None) -> bool:
        """Whether it is too early for the answer."""
        return self.is_early is not None and row is not None and self.is_early(row)


Make = Callable[[], Plan]
# Likewise, where what comes first takes its time; it fetches by itself what it needs.
Making = Callable[[], Plan | Awaitable[Plan]]


class Gate(NamedTuple):
    """What every operation needs."""

    live: Live
    asker: Asker
    reader: Reader
    topics: Topics
    partitions: int
    policy: GatewayPolicy
    grants: Grants
    quotas: ProposalQuotas
    looks: Looks
    desk: Desk
    definitions: DefinitionDesk
    catch_ups: CatchUps
    work: Work
    undecided: Undecided

    def row(self, subject: Subject) -> Row:
        """The row of a subject.

        Raises:
            Missing: it is not at hand.
        """
        row = self.reader.at_hand(subject)
        if row is None:
            raise Missing(subject)
        return row

    def execution_ask(
        self,
        execution_id: str,
        body: Any,
        actor: Actor,
        name: Any,
        *,
        anew: bool = False,
        dwell_ms: int | None = None,
    ) -> Ask:
        """A command for an execution of the actor's project; `anew` and `dwell_ms` as of `Ask`."""
        key = execution_key(actor.tenant, actor.project, execution_id)
        return Ask(body, actor, key, self.topics.commands, self.partitions, name, anew, dwell_ms)

    def json(self, resource: dict[str, Any], status: int = 200) -> Reply:
        """A resource as an answer, with the cursor of where this gateway stands."""
        resource["cursor"] = self.live.position.cursor()
        return Reply(status, orjson.dumps(resource))

    async def perform(self, make: Making) -> Reply:
        """Plan, ask, wait, and answer; errors as `perform`."""
        return await perform(self, make)


def definition_ask(gate: Gate, address: bytes, body: Any, actor: Actor, name: Any) -> Ask:
    """A command about what is published, at its address among the definitions."""
    return Ask(body, actor, address, gate.topics.definition_commands, 1, name)


def begun(gate: Gate, make: Make) -> Plan | Callable[[], Awaitable[Plan]]:
    """The plan, where it can be made without waiting; else what waits and gives it, with the errors of `planned`.

    Raises:
        Problem: whatever speaks against the request.
    """
    try:
        return make()
    except Missing:
        return partial(planned, gate, make)
    except Unprepared as unprepared:
        return unprepared.prepare


async def planned(gate: Gate, make: Making) -> Plan:
    """Plan, fetching what is missing.

    Raises:
        Problem: whatever speaks against the request; 404 where what is missing does not exist.
    """
    for _ in range(FETCHES_MAX):
        try:
            made = make()
            return made if isinstance(made, Plan) else await made
        except Missing as missing:
            await gate.reader.fetch(missing.subject)
        except Unprepared as unprepared:
            return await unprepared.prepare()
    raise Problem(Refusal.UNAVAILABLE, "too much is going on: try again", retry_after=1)


async def perform(gate: Gate, make: Making) -> Reply:
    """Plan, ask, wait, and answer.

    Raises:
        Problem: a refusal, or nobody has answered in time.
    """
    plan = await planned(gate, make)
    outcome = await gate.asker.answer(plan.ask, plan.timeout_s)
    if outcome is None:
        return unanswered(plan)
    if (problem := plan.refusal(outcome)) is not None:
        raise problem
    return at_once(plan, outcome, row_of(gate, plan)) or await in_time(gate, plan, outcome)


def row_of(gate: Gate, plan: Plan) -> Row | None:
    """The row that the answer shows, as it stands now; None where it is not at hand, or there is none to show."""
    return None if plan.subject is None else gate.reader.at_hand(plan.subject)


def at_once(plan: Plan, outcome: Outcome, row: Row | None) -> Reply | None:
    """The answer to an accepted command; None where it is still to be fetched, made or waited for (`in_time`).

    Args:
        plan: what was asked.
        outcome: what became of it.
        row: as it stands now (`row_of`).

    Raises:
        Problem: what was asked for is over already.
    """
    if plan.subject is not None and (row is None or plan.waits(row)):
        return None
    return plan.render(row, outcome) if plan.delivered(row) is None else None


async def in_time(gate: Gate, plan: Plan, outcome: Outcome) -> Reply:
    """The answer, where it takes its time: its row is fetched if it is not at hand.

    Raises:
        Problem: a refusal, or the row cannot be had now.
    """
    row = None
    if plan.subject is not None:
        row = gate.reader.at_hand(plan.subject) or await gate.reader.fetch(plan.subject)
        if plan.waits(row):
            row = await _no_longer_early(gate, plan, plan.subject) or row
    deliver = plan.delivered(row)
    return plan.render(row, outcome) if deliver is None else await deliver(row, outcome)


async def _no_longer_early(gate: Gate, plan: Plan, subject: Subject) -> Row | None:
    def is_there() -> bool:
        row = gate.reader.at_hand(subject)
        return row is not None and not plan.waits(row)

    await gate.live.watch.until((subject.key, subject.id), is_there, plan.timeout_s)
    return gate.reader.at_hand(subject)


def refusal_of(outcome: Outcome) -> Problem | None:
    """The problem that a refused command is answered with; None where it was accepted or done before."""
    refused = outcome.refused
    if refused is None or refused.code is Refusal.DUPLICATE:
        return None
    if refused.code is Refusal.NOT_FOUND:
        return not_found("resource") if not refused.detail else Problem(refused.code, refused.detail)
    fields = {"winning_decision_id": refused.winning_decision_id} if refused.winning_decision_id else {}
    if refused.code in (Refusal.UNAVAILABLE, Refusal.QUOTA) and not refused.given_up:
        return Problem(refused.code, refused.detail, retry_after=1, **fields)
    if refused.code is Refusal.INVALID_ARGUMENTS:
        return Problem(refused.code, refused.detail, errors=[_misfit(refused.detail)], **fields)
    return Problem(refused.code, refused.detail, **fields)


def _misfit(detail: str) -> dict[str, str]:
    """Where arguments do not fit their tool's schema, and why; the decider says both in one sentence."""
    path, _, message = detail.partition(": ")
    return {"path": f"arguments{path.removeprefix('$')}", "code": "schema", "message": message}


def ask_again(detail: str) -> Callable[[], Reply]:
    """In place of an answer when nobody has answered in time: 503, which says what to do."""

    def refuse() -> Reply:
        raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1)

    return refuse


def unanswered(plan: Plan) -> Reply:
    """The answer when nobody has answered in time.

    Raises:
        Problem: 503; the command may stand in the log and still be decided.
    """
    if plan.unanswered is not None:
        return plan.unanswered()
    raise Problem(
        Refusal.UNAVAILABLE,
        "nobody has answered yet; the command may stand in the log, so repeat it with the same ids and key",
        retry_after=1,
    )


def never(row: object, outcome: Outcome) -> Reply:
    """In place of `render` where a plan has `deliver`."""
    raise AssertionError("this plan is answered by `deliver`")
