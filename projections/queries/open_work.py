"""All open work of every tenant: the state from which a gateway starts; and executions by their keys."""

from collections.abc import Iterable

from projections.queries.moment import Moment
from projections.tables.calls import TOOL_CALLS, CallRow
from projections.tables.conversations import TURNS, TurnRow
from projections.tables.executions import EXECUTIONS, ExecutionRow
from projections.tables.holds import HOLDS, HoldRow
from schemas.ids import split_execution_key


def open_holds(moment: Moment) -> list[HoldRow]:
    """The open holds, longest open first."""
    return moment.select(HOLDS, 'WHERE "status" = \'open\' ORDER BY "opened_at_ms", "hold_id"')


def open_calls(moment: Moment) -> list[CallRow]:
    """The calls that have not ended."""
    return moment.select(TOOL_CALLS, 'WHERE "ended_at_ms" IS NULL')


def open_turns(moment: Moment) -> list[TurnRow]:
    """The turns of conversations that have not ended, in the order of their messages."""
    return moment.select(TURNS, 'WHERE "ended_at_ms" IS NULL ORDER BY "opened_at_ms", "log_offset"')


def open_executions(moment: Moment, limit: int) -> list[ExecutionRow]:
    """The executions under way, up to a number; those that started last come last."""
    newest = moment.select(
        EXECUTIONS, 'WHERE "ended_at_ms" IS NULL ORDER BY "started_at_ms" DESC LIMIT ?', (limit,)
    )
    return newest[::-1]


def executions_by_key(moment: Moment, keys: Iterable[bytes]) -> list[ExecutionRow]:
    """The executions with these Kafka keys, in any order; those that have not started are left out."""
    return moment.keyed(EXECUTIONS, [split_execution_key(key) for key in keys])
