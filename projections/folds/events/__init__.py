"""The effects of each event, one module for each subject.

Each event's effect is declared once: on the rows of its execution, call and hold, in the audit, in the tables that
analysts count, and in the counters behind trust (`projections.folds.effects`). Definitions have effects of their
own (`projections.folds.events.definitions`).
"""

from typing import Any

from projections.folds.effects import Effect
from projections.folds.events import calls, conversations, decisions, executions, holds, rules
from schemas.message import Message

_NOTHING: Effect[Any] = Effect(Message)


class Effects(dict[type[Message], Effect[Any]]):
    """Effects by the type of the event; a type that no module declares has no effect."""

    def __missing__(self, kind: type[Message]) -> Effect[Any]:
        return _NOTHING


EFFECTS = Effects(
    (one.of, one)
    for module in (executions, calls, holds, decisions, rules, conversations)
    for one in module.EFFECTS
)
