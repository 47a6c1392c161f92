"""What a gateway has seen of conversations: their turns in order, how each stands, and the holds in their runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ops.checker import Violation
from ops.checker.facts import Fact
from schemas.record import Event

CLOSING = frozenset({"ExecutionCompleted", "ExecutionFailed", "ExecutionCancelled"})
TIMER = "placet:timer"
STATES = {"TurnClaimed": "claimed", "TurnResumed": "waiting"}


@dataclass
class TurnSeen:
    """How one turn stands."""

    state: str = "waiting"
    attempt_id: str = ""
    replies: int = 0
    waits_for: str = ""


@dataclass
class ConversationSeen:
    """How one execution with messages stands."""

    state: str = "running"
    turns: dict[str, TurnSeen] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    # Request or call → the newest hold on it; and those of them that have not ended.
    holds: dict[str, str] = field(default_factory=dict)
    open_holds: set[str] = field(default_factory=set)

    def take(self, event: Event | Fact) -> None:
        """Take the next event about it."""
        body: Any = event.body
        if (turn_id := getattr(body, "turn_id", None)) is not None:
            self._take_turn(event.type, self.turns.setdefault(turn_id, TurnSeen()), body)
        elif event.type == "HoldOpened":
            self.holds[body.call_id or body.request_id] = body.hold_id
            self.open_holds.add(body.hold_id)
        elif event.type in ("HoldExpired", "HoldCancelled") or getattr(body, "resolves", False):
            self.open_holds.discard(body.hold_id)
        elif event.type in ("ExecutionPaused", "ExecutionResumed"):
            self.state = "paused" if event.type == "ExecutionPaused" else "running"
        elif event.type in CLOSING:
            self.state = "closed"

    def waits_for_a_worker(self) -> bool:
        """Whether a worker that came now would be given its next turn."""
        if self.state != "running" or not self.open:
            return False
        turn = self.turns[self.open[0]]
        return turn.state != "suspended" or turn.waits_for not in self.open_holds

    def _take_turn(self, what: str, turn: TurnSeen, body: Any) -> None:
        turn.state = STATES.get(what, turn.state)
        match what:
            case "MessageSent":
                self.open.append(body.turn_id)
            case "TurnClaimed":
                turn.attempt_id = body.attempt_id
            case "ReplyPosted":
                turn.replies = body.number
            case "TurnYielded":
                turn.state = "suspended" if body.cause == "waiting" else "waiting"
                turn.waits_for = body.hold_id
            case "TurnEnded":
                turn.state = body.outcome
                self.open = [turn_id for turn_id in self.open if turn_id != body.turn_id]


def check_answered(facts: Iterable[Fact], keys: Iterable[str]) -> list[Violation]:
    """I12: where workers were there to the end, every message has been answered, unless a person is waited for.

    Args:
        facts: the counting facts of all executions.
        keys: the conversations.
    """
    seen = {key: ConversationSeen() for key in keys}
    for fact in facts:
        if fact.key in seen:
            seen[fact.key].take(fact)
    what = "a turn was never ended though workers were there"
    return [
        Violation("I12", f"{key}/{each.open[0]}", what, (each.turns[each.open[0]].state, each.state))
        for key, each in seen.items()
        if each.open and (each.state == "closed" or each.waits_for_a_worker())
    ]


def how_a_turn_went_on(fact: Fact) -> str | None:
    """What is counted of a turn that is given back or ends, besides the event's type."""
    match fact.type:
        case "TurnYielded":
            return f"turn_{fact.body.cause}"
        case "TurnEnded":
            return "turn_given_up" if fact.body.by == TIMER else f"turn_{fact.body.outcome}"
    return None
