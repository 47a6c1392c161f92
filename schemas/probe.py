"""A planted call, as its proposal records it, and what people answered to it (docs/probes.md)."""

from typing import Any, Literal, TypeVar

import msgspec

from schemas.canonical import canonical
from schemas.json_pointer import value_at
from schemas.record import UnreadableRecord

# How many wrong places in its arguments a planted call can name.
WRONG_MAX = 20
ProbeResult = Literal["caught", "missed", "expired", "cancelled"]
T = TypeVar("T")


class Probe(msgspec.Struct, frozen=True):
    """A known-bad call that an operator plants to see whether people notice; it never runs.

    `by` is the operator. `note` says what is bad about it. `wrong` are the places in its arguments, as JSON Pointers,
    that an edit must change; empty if no edit makes the call right.
    """

    by: str
    note: str = ""
    wrong: tuple[str, ...] = ()


class ProbeAnswer(msgspec.Struct, frozen=True):
    """What one person answered: `caught` is true if the call would not have run as it was planted.

    `person` is the principal of the account `by`, empty if none was published.
    """

    by: str
    person: str
    decision: str
    caught: bool


def is_caught(probe: Probe, decision: str, before: Any, after: Any) -> bool:
    """True if a decision would have kept the planted call from running as it was.

    Args:
        probe: the planted call.
        decision: approve, edit, reject or respond.
        before: its parsed arguments.
        after: the edit's; None for another decision.
    """
    if decision != "edit":
        return decision != "approve"
    # An edit that leaves one wrong place as it was lets the bad call run.
    return bool(probe.wrong) and all(value_at(before, one) != value_at(after, one) for one in probe.wrong)


def probe_to_text(probe: Probe | None) -> str | None:
    """A planted call as canonical JSON; None for any other call."""
    return None if probe is None else canonical(msgspec.to_builtins(probe))


def probe_from_text(text: str | None) -> Probe | None:
    """A planted call from its JSON.

    Raises:
        UnreadableRecord: it is not one.
    """
    return None if text is None else _read(text, Probe)


def answers_to_text(answers: tuple[ProbeAnswer, ...]) -> str:
    """Answers as canonical JSON, in the order in which people gave them."""
    return canonical(msgspec.to_builtins(answers))


def answers_from_text(text: str) -> tuple[ProbeAnswer, ...]:
    """Answers from their JSON.

    Raises:
        UnreadableRecord: it is not a list of answers.
    """
    return _read(text, tuple[ProbeAnswer, ...])


def _read(text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise UnreadableRecord("malformed", f"not of a planted call: {error}") from error
