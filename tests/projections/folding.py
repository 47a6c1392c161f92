"""Fold events that were never on a log: each body as the next event of one execution."""

from __future__ import annotations

from collections.abc import Sequence

from projections.queries.history import ExecutionState, fold_all
from schemas.message import Message
from schemas.record import Event, EventMeta
from tests.projections.histories import START_MS, key_of

KEY = key_of("run-1")


def events_of(bodies: Sequence[Message]) -> list[Event]:
    """The bodies as events, a second apart."""
    return [
        Event(
            body,
            EventMeta(
                event_id=f"e{number}",
                at_ms=START_MS + number * 1000,
                term=0,
                version=number,
                command_id=f"c{number}",
                command_digest="d",
                tenant="acme",
            ),
            KEY,
            0,
            number,
        )
        for number, body in enumerate(bodies, start=1)
    ]


def state_of(*bodies: Message) -> ExecutionState:
    """The state that the bodies make."""
    return fold_all(events_of(bodies))
