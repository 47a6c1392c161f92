"""One resource by its id. Every function returns the row, or None: `*_json` of the folds makes the resource."""

from projections.queries.moment import Moment, some_of
from projections.tables.answers import ANSWERS, AnswerRow
from projections.tables.calls import TOOL_CALLS, CallRow
from projections.tables.conversations import MESSAGES, TURNS, MessageRow, TurnRow
from projections.tables.executions import EXECUTIONS, ExecutionRow
from projections.tables.holds import HOLDS, HoldRow


def execution(moment: Moment, tenant: str, project: str, execution_id: str) -> ExecutionRow | None:
    """An execution."""
    return moment.one(EXECUTIONS, tenant=tenant, project=project, execution_id=execution_id)


def call(moment: Moment, tenant: str, project: str, execution_id: str, call_id: str) -> CallRow | None:
    """A tool call."""
    return moment.one(TOOL_CALLS, tenant=tenant, project=project, execution_id=execution_id, call_id=call_id)


def hold(moment: Moment, tenant: str, project: str, hold_id: str) -> HoldRow | None:
    """A hold."""
    return moment.one(HOLDS, tenant=tenant, project=project, hold_id=hold_id)


def turn(moment: Moment, tenant: str, project: str, execution_id: str, turn_id: str) -> TurnRow | None:
    """A turn of a conversation."""
    return moment.one(TURNS, tenant=tenant, project=project, execution_id=execution_id, turn_id=turn_id)


def messages(
    moment: Moment, tenant: str, project: str, execution_id: str, *, after_offset: int = -1, limit: int
) -> tuple[list[MessageRow], bool]:
    """The messages of a conversation in order, those after an offset of the log; True if their size ended them."""
    tail = (
        'WHERE "tenant" = ? AND "project" = ? AND "execution_id" = ? AND "log_offset" > ? '
        'ORDER BY "log_offset" LIMIT ?'
    )
    return some_of(moment.each(MESSAGES, tail, (tenant, project, execution_id, after_offset, limit)))


def latest_messages(
    moment: Moment, tenant: str, project: str, execution_id: str, *, after_offset: int, limit: int
) -> tuple[list[MessageRow], bool]:
    """The messages of a conversation from the newest back, those before an offset; True if their size ended them."""
    tail = (
        'WHERE "tenant" = ? AND "project" = ? AND "execution_id" = ? AND "log_offset" < ? '
        'ORDER BY "log_offset" DESC LIMIT ?'
    )
    return some_of(moment.each(MESSAGES, tail, (tenant, project, execution_id, after_offset, limit)))


def turn_at(moment: Moment, tenant: str, project: str, execution_id: str, at_ms: int) -> TurnRow | None:
    """The turn of a conversation that was worked on at a time, or would have been next; None if there was none.

    Turns are worked on in the order of their messages: it is the first that had not ended.
    """
    tail = (
        'WHERE "tenant" = ? AND "project" = ? AND "execution_id" = ? AND "opened_at_ms" <= ? '
        'AND ("ended_at_ms" IS NULL OR "ended_at_ms" >= ?) ORDER BY "log_offset" LIMIT 1'
    )
    return next(iter(moment.select(TURNS, tail, (tenant, project, execution_id, at_ms, at_ms))), None)


def requests(
    moment: Moment, tenant: str, project: str, request_id: str, *, agent: str | None, limit: int
) -> list[HoldRow]:
    """The holds that are requests with this id, newest first: it is unique in its execution, but not in its project.

    With `agent`, only those of this agent's executions.
    """
    tail, parameters = '"tenant" = ? AND "project" = ? AND "request_id" = ?', [tenant, project, request_id]
    if agent is not None:
        tail, parameters = f'{tail} AND "agent" = ?', [*parameters, agent]
    order = f'AND "request_id" IS NOT NULL ORDER BY "opened_at_ms" DESC, "hold_id" LIMIT {limit:d}'
    return moment.select(HOLDS, f"WHERE {tail} {order}", parameters)


def answer(moment: Moment, tenant: str, project: str, command_id: str, log_key: str) -> AnswerRow | None:
    """The outcome of a command: its body's digest, the offsets of its events, and the refusal, if any.

    Of several commands with this id, the one under this key is returned if there is one, else another. Commands about
    definitions belong to a tenant and are found from each of its projects.
    """
    tail = 'WHERE "tenant" = ? AND "project" IN (?, \'\') AND "command_id" = ?'
    order = 'ORDER BY CASE WHEN "log_key" = ? THEN 0 ELSE 1 END LIMIT 1'
    return next(iter(moment.select(ANSWERS, f"{tail} {order}", (tenant, project, command_id, log_key))), None)
