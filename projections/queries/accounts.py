"""The accounts by which an agent proposes calls."""

from __future__ import annotations

from projections.queries.moment import Moment
from projections.tables.calls import TOOL_CALLS
from projections.tables.holds import HOLDS

# Of the newest holds of a project; holds have no index by agent.
HOLDS_LOOKED_AT = 20_000


def requesters_of(moment: Moment, tenant: str, project: str, agent: str) -> list[str]:
    """The accounts that requested an agent's newest holds on calls, by name; planted calls name none."""
    prefix, mark = moment.dialect.prefix, moment.dialect.placeholder
    newest = (
        f"SELECT tenant, project, execution_id, call_id, agent, requester FROM {prefix}{HOLDS.name} "  # noqa: S608
        f"WHERE tenant = ? AND project = ? ORDER BY opened_at_ms DESC, hold_id DESC LIMIT {HOLDS_LOOKED_AT}"
    )
    planted = (
        f"SELECT 1 FROM {prefix}{TOOL_CALLS.name} AS call WHERE call.tenant = hold.tenant AND "  # noqa: S608
        "call.project = hold.project AND call.execution_id = hold.execution_id AND call.call_id = hold.call_id AND "
        "call.probe IS NOT NULL"
    )
    text = (
        f"SELECT DISTINCT requester FROM ({newest}) AS hold WHERE agent = ? AND call_id IS NOT NULL AND "  # noqa: S608
        f"NOT EXISTS ({planted}) ORDER BY requester"
    )
    return [str(row[0]) for row in moment.execute(text.replace("?", mark), (tenant, project, agent))]
