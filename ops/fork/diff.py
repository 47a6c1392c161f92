"""The two branches compared, call by call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ops.fork.drive import Stop
from ops.fork.point import said_of
from ops.fork.recorded import RecordedCall, Run
from ops.fork.stubs import Stub, Used
from schemas.standing_rule import IN_EXECUTION

# How a decision that the run remembered is cited.
REMEMBERED = "remembered"
Relation = Literal["same", "different", "not_reached"]


@dataclass(frozen=True)
class Side:
    """One call in one branch.

    Attributes:
        status: how it ended.
        effect: the policy's verdict on what the agent proposed, empty without one.
        rules: the rules that the verdict cites, as `policy@version/rule`.
        policy: the policy that judged it, as `policy@version`.
        decisions: what people decided on it, in order: the word and who.
        arguments: those of its newest revision, canonical JSON.
        result: what its tool returned, JSON or the text of an error; None if it did not.
    """

    status: str
    effect: str
    rules: tuple[str, ...]
    policy: str
    decisions: tuple[str, ...]
    arguments: str
    result: str | None


@dataclass(frozen=True)
class Row:
    """A call of the original, and the same in the fork: None if it was not reached.

    Attributes:
        call_id: in both branches.
        tool: its name.
        relation: same, different, or not_reached.
        differs: of `verdict`, `decision`, `arguments`, `outcome` those that differ.
        original: the original's.
        fork: the fork's.
        used: its values that came out of results which the fork does not have.
        is_looked_at: false if that is not known, because it has values that are not looked at.
        stub: the call of the original whose result it was given; None if it was given none, or an assumed one.
        is_assumed: whether its result was assumed.
    """

    call_id: str
    tool: str
    relation: Relation
    differs: tuple[str, ...]
    original: Side
    fork: Side | None = None
    used: tuple[Used, ...] = ()
    stub: str | None = None
    is_assumed: bool = False
    is_looked_at: bool = True


def compare(
    original: Run,
    fork: Run,
    stopped: Stop | None,
    stubs: Mapping[str, Stub],
    used: Mapping[str, Sequence[Used] | None],
) -> list[Row]:
    """The calls of the original, in order, each with what became of it in the fork.

    Args:
        original: the original.
        fork: the fork, which has calls of the same ids.
        stopped: where the fork stopped, if it did; what ended with the run afterwards is not what became of the call.
        stubs: the results that the fork's calls were given.
        used: the values of its calls that came out of results which it does not have; None where that is not known.
    """
    rows = []
    for call_id, call in original.calls.items():
        there, stub = fork.calls.get(call_id), stubs.get(call_id)
        here = _side(call)
        if there is None:
            rows.append(Row(call_id, call.tool, "not_reached", (), here))
            continue
        ended = stopped.status if stopped is not None and stopped.call_id == call_id else None
        other = _side(there, ended)
        came_from = used.get(call_id, ())
        differs = tuple(_differing(call, there, here, other))
        rows.append(
            Row(
                call_id,
                call.tool,
                "different" if differs else "same",
                differs,
                here,
                other,
                tuple(came_from or ()),
                stub.call_id if stub is not None else None,
                stub is not None and stub.call_id is None,
                came_from is not None,
            )
        )
    return rows


def short(rule: str) -> str:
    """A cited rule without what is another in each branch: its policy's version, the decision that was remembered."""
    return REMEMBERED if rule.startswith(IN_EXECUTION) else rule.rpartition("/")[2]


def _side(call: RecordedCall, ended: str | None = None) -> Side:
    verdict, result = call.verdict, call.result
    return Side(
        status=ended or call.status,
        effect="" if verdict is None else verdict.effect,
        rules=() if verdict is None else verdict.rules,
        policy="" if verdict is None else verdict.policy_version,
        decisions=tuple(said_of(one) for one in call.holds if one.decision is not None or one.expired),
        arguments=call.final_arguments,
        result=None if result is None else result.text,
    )


def _differing(call: RecordedCall, there: RecordedCall, here: Side, other: Side) -> list[str]:
    found = []
    if (here.effect, [short(rule) for rule in here.rules]) != (
        other.effect,
        [short(rule) for rule in other.rules],
    ):
        found.append("verdict")
    if _words(call) != _words(there):
        found.append("decision")
    if here.arguments != other.arguments:
        found.append("arguments")
    if (here.status, here.result) != (other.status, other.result):
        found.append("outcome")
    return found


def _words(call: RecordedCall) -> list[str]:
    """What was decided, whoever did: the fork's decisions are all of one person."""
    return [
        one.decision.decision if one.decision is not None else "expired"
        for one in call.holds
        if one.decision is not None or one.expired
    ]
