"""One thing by its id. Every function returns the row, or None: `*_json` of the folds makes the resource."""

from projections.folds.rows import Row
from projections.queries.moment import Moment
from projections.store.tables import ANSWERS, EXECUTIONS, HOLDS, TOOL_CALLS


def execution(moment: Moment, tenant: str, project: str, execution_id: str) -> Row | None:
    """An execution."""
    return moment.one(EXECUTIONS, tenant=tenant, project=project, execution_id=execution_id)


def call(moment: Moment, tenant: str, project: str, execution_id: str, call_id: str) -> Row | None:
    """A tool call."""
    return moment.one(TOOL_CALLS, tenant=tenant, project=project, execution_id=execution_id, call_id=call_id)


def hold(moment: Moment, tenant: str, project: str, hold_id: str) -> Row | None:
    """A hold."""
    return moment.one(HOLDS, tenant=tenant, project=project, hold_id=hold_id)


def request(moment: Moment, tenant: str, project: str, request_id: str) -> Row | None:
    """The hold that a request is; the newest, where several executions chose the same id."""
    tail = (
        'WHERE "tenant" = ? AND "project" = ? AND "request_id" = ? AND "request_id" IS NOT NULL '
        'ORDER BY "opened_at_ms" DESC, "hold_id" LIMIT 1'
    )
    return next(iter(moment.select(HOLDS, tail, (tenant, project, request_id))), None)


def answer(moment: Moment, tenant: str, project: str, command_id: str) -> Row | None:
    """What became of a command: its body's digest, where its events stand, and the refusal, if any.

    Commands about definitions belong to a tenant and are found from every project of it.
    """
    tail = 'WHERE "tenant" = ? AND "project" IN (?, \'\') AND "command_id" = ? LIMIT 1'
    return next(iter(moment.select(ANSWERS, tail, (tenant, project, command_id))), None)
