"""The executions."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, Moment, TableOf
from projections.tables.common import (
    Agent,
    Context,
    EndedAt,
    Error,
    ExecutionId,
    LogPartition,
    Project,
    Senders,
    Tenant,
    UpdatedAt,
)


class ExecutionRow(TypedDict):
    """One row for each run of an agent."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    agent: Agent
    user_id: Annotated[str, "The user on whose behalf it runs."]
    workspace: Annotated[str, "The workspace, as the agent named it."]
    request: Annotated[str, "The request that the run was started for."]
    senders: Senders | None
    turn_id: Annotated[
        str | None, "Id of the turn that a worker has taken on and that has not ended; null if there is none."
    ]
    context: Context
    state: Annotated[
        str,
        "running, paused, waiting_clarification, waiting_approval, resumed, completed, failed or cancelled.",
    ]
    lifecycle: Annotated[str, "The state, ignoring what it waits for."]
    open_approvals: Annotated[int, "Open holds of kind permission."]
    open_questions: Annotated[int, "Open holds of other kinds."]
    calls: Annotated[int, "Number of calls that it proposed."]
    version: Annotated[int, "Number of the run's events."]
    result: Annotated[Json | None, "JSON of its result."]
    error: Error | None
    reason: Annotated[str | None, "Why it is paused or was cancelled."]
    started_by: Annotated[str, "Who started it."]
    planted: Annotated[int, "1 if an operator opened it for a planted call (docs/probes.md), else 0."]
    ended_by: Annotated[str | None, "Who ended it."]
    started_at_ms: Annotated[Moment, "When it started."]
    updated_at_ms: UpdatedAt
    ended_at_ms: EndedAt | None
    log_partition: LogPartition


EXECUTIONS = TableOf(
    "executions",
    ExecutionRow,
    key=("tenant", "project", "execution_id"),
    indices=(
        Index("executions_by_start", ("tenant", "project", "started_at_ms", "execution_id")),
        Index(
            "executions_under_way",
            ("tenant", "project", "started_at_ms", "execution_id"),
            where="ended_at_ms IS NULL",
        ),
    ),
    time="started_at_ms",
)
