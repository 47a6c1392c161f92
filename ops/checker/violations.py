"""What the checker says: one broken promise, where, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass

# The invariants of the reliability page that this checker looks for, in its words.
INVARIANTS = {
    "I1": "no effect without an earlier release with the same digest, tenant and definitions",
    "I2": "at most one effect per call; an unknown outcome waits for a person",
    "I3": "every acknowledged command is in the log, every acknowledged decision survives",
    "I4": "exactly one terminal state per call, none after it",
    "I5": "denied, expired and cancelled calls never run; nothing late is released",
    "I6": "a replay from offset 0 equals the live state",
    "I7": "only a decider's record of the term in force changes anything",
    "I8": "a view never counts a record twice or skips one",
    "I9": "nothing of one tenant under another's key or in its answers",
    "I10": "approver is not requester where asked; quorum of distinct people",
    "I12": "once faults stop, every call ends or waits, and nothing lags or leaks",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant.

    Attributes:
        invariant: its number, a key of `INVARIANTS`.
        where: `topic/partition@offset`, or a client's line.
        what: one sentence.
        evidence: the values that contradict each other.
    """

    invariant: str
    where: str
    what: str
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = f" [{'; '.join(map(str, self.evidence))}]" if self.evidence else ""
        return f"{self.invariant} {self.where}: {self.what}{shown}"
