"""The rows of earlier commands that a reader of the past keeps: few, and what is missing is folded again."""

from __future__ import annotations

from gateway.live.facts import Group
from gateway.live.live import groups_of
from gateway.pushes import past_rows
from gateway.pushes.past_rows import PastRows
from projections.queries.history import ExecutionState, WantedRows, fold_all
from schemas.events import calls as c
from schemas.events import conversations as v
from schemas.message import Message
from schemas.record import Event
from tests.gateway.facts import Partition, key_of, new_live, proposed, started

KEY = key_of("run-1")
ARGUMENTS = '{"a":"%s"}' % ("x" * 200_000)
CALLS = 40


def a_history() -> list[Group]:
    """Forty calls with large arguments, and then the end of each."""
    partition = Partition(new_live()[0])
    commands: list[list[Message]] = [[started()]]
    commands += [[large(number)] for number in range(CALLS)]
    commands += [[cancelled(number)] for number in range(CALLS)]
    events = [
        event
        for number, bodies in enumerate(commands)
        for event in partition.events(KEY, f"command-{number}", bodies)
    ]
    return groups_of(1, events)


def large(number: int) -> c.ToolCallProposed:
    return proposed(f"c{number}").model_copy(update={"arguments": ARGUMENTS})


def cancelled(number: int) -> c.ToolCallCancelled:
    return c.ToolCallCancelled(call_id=f"c{number}", reason="")


async def test_rows_beyond_the_limit_are_dropped_and_folded_again_when_they_are_needed() -> None:
    groups, asked = a_history(), list[WantedRows]()
    earlier: list[Event] = []

    async def before(group: Group, wanted: WantedRows) -> ExecutionState:
        asked.append(wanted)
        state = fold_all(earlier)
        return ExecutionState(state.execution, {name: state.calls[name] for name in wanted.calls})

    rows = PastRows(before)
    for group in groups:
        await rows.fill(group)
        assert rows.size < past_rows.KEPT_BYTES + 2 * len(ARGUMENTS) + 10_000
        earlier += group.events()
    whole = fold_all(earlier)
    for group in groups[-CALLS:]:
        (fact,) = group.facts
        assert fact.call is not None
        assert fact.call == whole.calls[fact.call["call_id"]]
        assert fact.call["status"] == "cancelled"
        assert fact.call["arguments"] == ARGUMENTS
    # The last calls were still there.
    assert 0 < len(asked) <= CALLS
    assert all(len(wanted.calls) == 1 for wanted in asked)


async def test_short_history_is_never_read_again() -> None:
    groups = a_history()[:3]

    async def before(group: Group, wanted: WantedRows) -> ExecutionState:
        raise AssertionError(wanted)

    rows = PastRows(before)
    for group in groups:
        await rows.fill(group)


async def test_trace_of_a_turn_stays_when_the_history_is_read_for_another_row() -> None:
    partition, trace = Partition(new_live()[0]), f"00-{'a' * 32}-{'b' * 16}-01"
    told = [
        *partition.events(KEY, "start", [started()]),
        *partition.events(KEY, "propose", [proposed()]),
        *partition.events(KEY, "message", [v.MessageSent(turn_id="m", text="hello", by="rita")]),
        *partition.events(
            KEY, "claim", [v.TurnClaimed(turn_id="m", attempt_id="a", lease_until_ms=9, by="bot")]
        ),
        *partition.events(KEY, "cancel", [c.ToolCallCancelled(call_id="c1", reason="")]),
        *partition.events(KEY, "end", [v.TurnEnded(turn_id="m", outcome="completed", error="", by="bot")]),
    ]

    async def before(group: Group, wanted: WantedRows) -> ExecutionState:
        # As from the views' history, which has no trace.
        state = fold_all(event for event in told if event.offset < group.first_offset)
        calls = {name: state.calls[name] for name in wanted.calls if name in state.calls}
        return ExecutionState(state.execution, calls, {}, dict(state.turns))

    traced = [
        event._replace(meta=event.meta._replace(trace=trace))
        if isinstance(event.body, v.MessageSent)
        else event
        for event in told[2:]
    ]
    rows, seen = PastRows(before), list[str | None]()
    for group in groups_of(1, traced):
        await rows.fill(group)
        seen += [fact.turn["trace"] for fact in group.facts if fact.turn is not None]
    assert seen == [trace] * 3
