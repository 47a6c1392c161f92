"""The steps from a request to its answer, the same for REST, the WebSocket and every operation.

1. A plan is made from the cached rows. If a row is missing, `Missing` names it: it is fetched, and the plan is made
   again. If something slow must be done first, `Unprepared` does it and returns the plan.
2. The plan contains the command for the decider, and the command is sent.
3. The plan says how to answer: at once if the cached rows are enough, else in time.

`perform` does all of it. A caller that must not wait between its messages (a socket) takes the same steps one by one:
`begun`, `at_once` and `in_time`; `carry_out` for a plan with two commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import orjson

from gateway.asking.asker import Ask, Asker, awaited
from gateway.asking.undecided import Undecided
from gateway.checking.definition_readers import DefinitionReaders
from gateway.identity.grants import Grants
from gateway.live.live import Live
from gateway.live.outcome import Outcome
from gateway.live.reader import Reader, Subject
from gateway.policy import GatewayPolicy
from gateway.problems import Problem, not_found
from gateway.pushes.catching_up import CatchUps
from gateway.shares.quotas import ProposalQuotas
from gateway.shares.work import Work, owner_of
from gateway.vault.access import VaultAccess
from gateway.view_times import ViewTimes
from gateway.views import GatewayViews
from projections.folds.rows import Row
from schemas.actor import Actor
from schemas.ids import execution_key
from schemas.refusals import Refusal
from schemas.topics import Topics

ANSWER_TIMEOUT_S = 10.0
FETCHES_MAX = 8

# The parsed body, read only after the checks that come first: that the resource exists and may be changed.
Given = Callable[[], dict[str, Any]]


class Reply(NamedTuple):
    """An answer: HTTP status and JSON body."""

    status: int
    body: bytes


class Missing(Exception):
    """A row that is needed is not cached."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(str(subject))
        self.subject = subject


class Unprepared(Exception):
    """Something slow must be done first; then there is a plan.

    Attributes:
        prepare: does it, and returns the plan. It needs no further row.
    """

    def __init__(self, prepare: Callable[[], Awaitable[Plan]]) -> None:
        super().__init__("unprepared")
        self.prepare = prepare


class Plan(NamedTuple):
    """The command to send, and how to answer.

    Attributes:
        ask: the command.
        subject: the resource that the answer shows, fetched if it is not cached; None if the outcome is enough.
        render: makes the answer to an accepted command from the row of `subject`; from None if there is no subject.
        unanswered: makes the answer if the decider has not answered in time; None: 503 unavailable.
        refused: changes a refusal of the decider before it is answered; None: it is answered unchanged.
        timeout_s: how long to wait for the decider.
        deliver: makes the answer in place of `render`, if that takes time.
        delivers: the rows for which `deliver` is used; None: all.
        is_early: True while the subject's row does not yet show the result of the command but soon will by itself:
            the answer waits for that, at most `timeout_s`.
        first: a command that goes before, to the same partition; if it is refused, that is the answer. Only
            `carry_out` sends it. What is wrong with `ask` in any state was refused before, so that nothing is opened
            for it.
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
    first: Ask | None = None

    def delivered(self, row: Row | None) -> Callable[[Row, Outcome], Awaitable[Reply]] | None:
        """Return the slow function that makes the answer for a row; None if `render` makes it."""
        return self.deliver if self.delivers is None or self.delivers(row) else None

    def refusal(self, outcome: Outcome) -> Problem | None:
        """Return the problem for a refused command; None if it was accepted or done before."""
        problem = refusal_of(outcome)
        return problem if problem is None or self.refused is None else self.refused(problem)

    def waits(self, row: Row | None) -> bool:
        """Return True if it is too early for the answer."""
        return self.is_early is not None and row is not None and self.is_early(row)


Make = Callable[[], Plan]
# The same, if the first steps take time; it fetches the rows that it needs itself.
Making = Callable[[], Plan | Awaitable[Plan]]


class Gate(NamedTuple):
    """The services that every operation needs."""

    live: Live
    asker: Asker
    reader: Reader
    topics: Topics
    partitions: int
    policy: GatewayPolicy
    grants: Grants
    quotas: ProposalQuotas
    view_times: ViewTimes
    vault_access: VaultAccess
    definitions: DefinitionReaders
    catch_ups: CatchUps
    work: Work
    undecided: Undecided
    views: GatewayViews

    def of(self, actor: Actor) -> Gate:
        """Return these services for one actor: rows that are not cached are looked up at its subject's cost."""
        lookups = self.views.lookups_of(self.work, owner_of(actor))
        return self._replace(reader=self.reader.with_rows(lookups))

    def row(self, subject: Subject) -> Row:
        """Return the row of a subject.

        Raises:
            Missing: it is not cached.
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
        """Return a command for an execution of the actor's project; `anew` and `dwell_ms` as in `Ask`."""
        key = execution_key(actor.tenant, actor.project, execution_id)
        return Ask(body, actor, key, self.topics.commands, self.partitions, name, anew, dwell_ms)

    def json(self, resource: dict[str, Any], status: int = 200) -> Reply:
        """Return a resource as an answer, with the cursor of this gateway's position."""
        resource["cursor"] = self.live.position.cursor()
        return Reply(status, orjson.dumps(resource))

    async def perform(self, make: Making) -> Reply:
        """Plan, send, wait and answer; errors as `perform`."""
        return await perform(self, make)


def definition_ask(gate: Gate, address: bytes, body: Any, actor: Actor, name: Any) -> Ask:
    """Return a command about a definition, at its address in the definitions topic."""
    return Ask(body, actor, address, gate.topics.definition_commands, 1, name)


def begun(gate: Gate, make: Make) -> Plan | Callable[[], Awaitable[Plan]]:
    """Return the plan if it can be made without waiting, else the slow function that makes it (errors as `planned`).

    Raises:
        Problem: the request is refused.
    """
    try:
        return make()
    except Missing:
        return partial(planned, gate, make)
    except Unprepared as unprepared:
        return unprepared.prepare


async def planned(gate: Gate, make: Making) -> Plan:
    """Make the plan, and fetch the rows that are missing.

    Raises:
        Problem: the request is refused; 404 if the missing row does not exist.
    """
    for _ in range(FETCHES_MAX):
        try:
            made = make()
            return made if isinstance(made, Plan) else await made
        except Missing as missing:
            await gate.reader.fetch(missing.subject)
        except Unprepared as unprepared:
            return await unprepared.prepare()
    raise Problem(
        Refusal.UNAVAILABLE, "the rows of this request could not all be read: try again", retry_after=1
    )


async def perform(gate: Gate, make: Making) -> Reply:
    """Plan, send, wait and answer.

    Raises:
        Problem: the command is refused, or the decider has not answered in time.
    """
    return await carry_out(gate, await planned(gate, make))


async def carry_out(gate: Gate, plan: Plan) -> Reply:
    """Send the command of a plan, wait and answer; errors as `perform`."""
    # Both are sent before the first answer, so that two commands take one round trip.
    opening = None if plan.first is None else gate.asker.send(plan.first, plan.timeout_s)
    answer = gate.asker.send(plan.ask, plan.timeout_s)
    if opening is not None and accepted(plan, await awaited(opening)) is None:
        return unanswered(plan)
    outcome = accepted(plan, await awaited(answer))
    if outcome is None:
        return unanswered(plan)
    return at_once(plan, outcome, row_of(gate, plan)) or await in_time(gate, plan, outcome)


def accepted(plan: Plan, outcome: Outcome | None) -> Outcome | None:
    """Return the outcome of an accepted command; None if there is no answer in time.

    Raises:
        Problem: it was refused.
    """
    if outcome is not None and (problem := plan.refusal(outcome)) is not None:
        raise problem
    return outcome


def row_of(gate: Gate, plan: Plan) -> Row | None:
    """Return the row that the answer shows, as it is now; None if it is not cached, or the answer shows no row."""
    return None if plan.subject is None else gate.reader.at_hand(plan.subject)


def at_once(plan: Plan, outcome: Outcome, row: Row | None) -> Reply | None:
    """Return the answer to an accepted command; None if it must be fetched, made or waited for (`in_time`).

    Args:
        plan: the plan.
        outcome: the outcome of its command.
        row: the row as it is now (`row_of`).

    Raises:
        Problem: the requested state is already over.
    """
    if plan.subject is not None and (row is None or plan.waits(row)):
        return None
    return plan.render(row, outcome) if plan.delivered(row) is None else None


async def in_time(gate: Gate, plan: Plan, outcome: Outcome) -> Reply:
    """Return an answer that takes time: its row is fetched if it is not cached.

    Raises:
        Problem: a refusal, or the row cannot be read now.
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
    """Return the problem for a refused command; None if it was accepted or done before."""
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
    """The path and message of arguments that do not fit their tool's schema; the decider sends both as one text."""
    path, _, message = detail.partition(": ")
    return {"path": f"arguments{path.removeprefix('$')}", "code": "schema", "message": message}


def ask_again(detail: str) -> Callable[[], Reply]:
    """Return a function that answers 503 with what to do, used if the decider has not answered in time."""

    def refuse() -> Reply:
        raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1)

    return refuse


def unanswered(plan: Plan) -> Reply:
    """Return the answer if the decider has not answered in time.

    Raises:
        Problem: 503; the command may be in the log and still be decided.
    """
    if plan.unanswered is not None:
        return plan.unanswered()
    raise Problem(
        Refusal.UNAVAILABLE,
        "there is no answer yet; the request may still be carried out, and is carried out once if it is repeated"
        " with the same ids and the same idempotency key",
        retry_after=1,
    )


def never(row: object, outcome: Outcome) -> Reply:
    """Placeholder for `render` in a plan that has `deliver`."""
    raise AssertionError("this plan is answered by `deliver`")
