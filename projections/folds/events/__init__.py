"""What each event does, one module for each subject.

An event's effect stands here once: on the rows of its execution, call and hold, in the audit, in the tables that
analysts count, and in the counters behind trust (`projections.folds.effects`). What is published has effects of its
own (`projections.folds.events.definitions`).
"""

from typing import Any

from projections.folds.effects import Effect
from projections.folds.events import calls, decisions, executions, holds, rules
from schemas.message import Message

_NOTHING: Effect[Any] = Effect(Message)


class Effects(dict[type[Message], Effect[Any]]):
    """Effects by the type of the event; of a type that no module tells of, none."""

    def __missing__(self, kind: type[Message]) -> Effect[Any]:
        return _NOTHING


EFFECTS = Effects(
    (one.of, one) for module in (executions, calls, holds, decisions, rules) for one in module.EFFECTS
)
