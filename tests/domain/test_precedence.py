"""Of two reasons against one command, the decider answers the one that comes first in precedence.

Each fault changes one place of a command that is in order, or of the world in which it is sent. Alone, it is refused
with its code. Any two faults that can be together are refused with the earlier one of their codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.limits import ARGUMENTS_MAX_BYTES
from schemas.message import Message
from schemas.refusals import Refusal, first_in_precedence
from tests.domain.steps import (
    TESSA,
    ask_two,
    code,
    consumed,
    decided,
    held,
    proposed,
    released,
    reported,
    started,
)
from tests.domain.world import ANNA, BOT, OLGA, OTHER_BOT, RITA, World, names

LARGE = '{"a":"' + "x" * ARGUMENTS_MAX_BYTES + '"}'


@dataclass
class Case:
    """A command that is about to be sent, in the world that it is sent in."""

    world: World
    actor: Actor
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """What is wrong. `place` is where: two faults of one place cannot be together."""

    place: str
    code: Refusal
    name: str
    put: Callable[[Case], None]

    def __str__(self) -> str:
        return self.name


def says(**changes: Any) -> Callable[[Case], None]:
    """The command says this instead."""
    return lambda case: case.fields.update(changes)


def by(actor: Actor) -> Callable[[Case], None]:
    """Somebody else sends it."""

    def put(case: Case) -> None:
        case.actor = actor

    return put


def before(step: Callable[[World, Case], object]) -> Callable[[Case], None]:
    """This happened before."""

    def put(case: Case) -> None:
        step(case.world, case)

    return put


@dataclass(frozen=True)
class Command:
    """A command in order, and what can be wrong with it. States of the world come first: they need it in order."""

    make: Callable[[], Case]
    model: type[Message]
    accepted: str
    faults: Sequence[Fault]

    def sent(self, faults: Sequence[Fault]) -> list[Message]:
        """The events of the command with these faults."""
        case = self.make()
        for fault in sorted(faults, key=lambda fault: fault.place != "state"):
            fault.put(case)
        return case.world.ask(self.model(**case.fields), case.actor)


def past_deadline(world: World, _: Case) -> None:
    world.now_ms += 3_600_000


def cancelled(world: World, _: Case) -> None:
    world.ask(k.CancelExecution(), OLGA)


# A decision on a held payment.
def a_decision() -> Case:
    world = started()
    hold = held(world)
    return Case(world, RITA, {"hold_id": hold.hold_id, "decision": "approve", "digest": hold.digest})


def hold_of(case: Case) -> Any:
    return next(iter(case.world.state().holds.values()))


def voted(world: World, case: Case) -> None:
    ask_two(world)
    hold = held(world, call_id="of-two")
    decided(world, hold, "approve")
    case.fields |= {"hold_id": hold.hold_id, "digest": hold.digest}


R = Refusal
DECISION = Command(
    a_decision,
    k.DecideHold,
    "DecisionRecorded",
    (
        Fault("hold", R.NOT_FOUND, "unknown hold", says(hold_id="none")),
        Fault("actor", R.NOT_AUTHORISED, "by an agent", by(BOT)),
        Fault("actor", R.FORBIDDEN_ROLE, "without the role", by(ANNA)),
        Fault("content", R.TOO_LARGE, "large edit", says(decision="edit", edited_arguments=LARGE)),
        Fault("content", R.MALFORMED, "no JSON", says(decision="edit", edited_arguments="{")),
        Fault("content", R.MALFORMED, "value no JSON", says(decision="respond", value="{")),
        Fault("content", R.INVALID, "edit without arguments", says(decision="edit")),
        Fault("content", R.INVALID, "approval with a value", says(value='"yes"')),
        Fault(
            "content",
            R.INVALID_ARGUMENTS,
            "edit that misfits",
            says(decision="edit", edited_arguments='{"amount":"much"}'),
        ),
        Fault("digest", R.INVALID, "no digest", says(digest="")),
        Fault("digest", R.DIGEST_MISMATCH, "other digest", says(digest="stale")),
        Fault(
            "state",
            R.ALREADY_DECIDED,
            "decided",
            before(lambda w, c: decided(w, hold_of(c), "approve", TESSA)),
        ),
        Fault("state", R.EXPIRED, "expired", before(past_deadline)),
        Fault("state", R.EXECUTION_CLOSED, "cancelled run", before(cancelled)),
        Fault("state", R.ALREADY_VOTED, "voted already", before(voted)),
    ),
)


# A claim of a held payment.
def a_claim() -> Case:
    case = a_decision()
    case.fields = {"hold_id": case.fields["hold_id"], "seconds": 60}
    return case


CLAIM = Command(
    a_claim,
    k.ClaimHold,
    "HoldClaimed",
    tuple(
        fault
        for fault in DECISION.faults
        if fault.place in ("hold", "actor", "state") and fault.code is not R.ALREADY_VOTED
    ),
)


# The consumption of a released payment.
def a_consumption() -> Case:
    world = started()
    digest = released(world)
    return Case(world, BOT, {"call_id": "c", "digest": digest, "attempt_id": "a"})


def of_a_held_call(world: World, case: Case) -> None:
    case.fields |= {"call_id": "waits", "digest": held(world, call_id="waits").digest}


CONSUMPTION = Command(
    a_consumption,
    k.ConsumeGrant,
    "GrantConsumed",
    (
        Fault("call", R.NOT_FOUND, "unknown call", says(call_id="none")),
        Fault("actor", R.NOT_FOUND, "by another agent", by(OTHER_BOT)),
        Fault("digest", R.DIGEST_MISMATCH, "other digest", says(digest="stale")),
        Fault(
            "state",
            R.ALREADY_CONSUMED,
            "another attempt",
            before(lambda w, c: consumed(w, c.fields["digest"], "other")),
        ),
        Fault("state", R.NOT_RELEASED, "held", before(of_a_held_call)),
        Fault("state", R.EXECUTION_CLOSED, "cancelled run", before(cancelled)),
    ),
)


# A proposal of a payment.
def a_proposal() -> Case:
    world = started()
    return Case(world, BOT, {"call_id": "c", "tool": "pay", "arguments": '{"amount":5}'})


PROPOSAL = Command(
    a_proposal,
    k.ProposeToolCall,
    "ToolCallProposed",
    (
        Fault("actor", R.NOT_FOUND, "by another agent", by(OTHER_BOT)),
        Fault("arguments", R.TOO_LARGE, "large", says(arguments=LARGE)),
        Fault("arguments", R.MALFORMED, "no JSON", says(arguments="{")),
        Fault("arguments", R.INVALID_ARGUMENTS, "misfit", says(arguments='{"amount":"much"}')),
        Fault("state", R.ID_REUSED, "id taken", before(lambda w, _: proposed(w, "read"))),
        Fault("state", R.EXECUTION_CLOSED, "cancelled run", before(cancelled)),
    ),
)


# The result of a payment that ran.
def a_result() -> Case:
    case = a_consumption()
    consumed(case.world, case.fields["digest"])
    case.fields = {"call_id": "c", "attempt_id": "a", "outcome": "succeeded"}
    return case


RESULT = Command(
    a_result,
    k.ReportResult,
    "ToolCallSucceeded",
    (
        Fault("call", R.NOT_FOUND, "unknown call", says(call_id="none")),
        Fault("actor", R.NOT_FOUND, "by another agent", by(OTHER_BOT)),
        Fault("output", R.TOO_LARGE, "large", says(output=LARGE)),
        Fault("output", R.MALFORMED, "no JSON", says(output="{")),
        Fault(
            "state",
            R.ID_REUSED,
            "told otherwise",
            before(lambda w, _: reported(w, "failed", error='"no"')),
        ),
    ),
)

COMMANDS = {
    "decision": DECISION,
    "claim": CLAIM,
    "consumption": CONSUMPTION,
    "proposal": PROPOSAL,
    "result": RESULT,
}
ALONE = [(name, fault) for name, command in COMMANDS.items() for fault in command.faults]
PAIRS = [
    (name, one, other)
    for name, command in COMMANDS.items()
    for one, other in combinations(command.faults, 2)
    if one.place != other.place
]


@pytest.mark.parametrize("name", COMMANDS)
def test_command_in_order_is_accepted(name: str) -> None:
    assert COMMANDS[name].accepted in names(COMMANDS[name].sent(()))


@pytest.mark.parametrize(("name", "fault"), ALONE, ids=str)
def test_fault_alone_is_refused_with_its_code(name: str, fault: Fault) -> None:
    assert code(COMMANDS[name].sent((fault,))) == fault.code


@pytest.mark.parametrize(("name", "one", "other"), PAIRS, ids=str)
def test_of_two_faults_the_first_in_precedence_is_answered(name: str, one: Fault, other: Fault) -> None:
    assert code(COMMANDS[name].sent((one, other))) == first_in_precedence((one.code, other.code))
