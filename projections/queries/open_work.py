"""All that is open, of every tenant: what a gateway goes on from when it starts."""

from projections.queries.moment import Moment
from projections.tables.calls import TOOL_CALLS, CallRow
from projections.tables.executions import EXECUTIONS, ExecutionRow
from projections.tables.holds import HOLDS, HoldRow


def open_holds(moment: Moment) -> list[HoldRow]:
    """The holds that wait, longest open first."""
    return moment.select(HOLDS, 'WHERE "status" = \'open\' ORDER BY "opened_at_ms", "hold_id"')


def open_calls(moment: Moment) -> list[CallRow]:
    """The calls that have not ended."""
    return moment.select(TOOL_CALLS, 'WHERE "ended_at_ms" IS NULL')


def open_executions(moment: Moment, limit: int) -> list[ExecutionRow]:
    """The executions under way, up to a number, those started last at the end."""
    newest = moment.select(
        EXECUTIONS, 'WHERE "ended_at_ms" IS NULL ORDER BY "started_at_ms" DESC LIMIT ?', (limit,)
    )
    return newest[::-1]
