"""The turns of conversations, and what was said in them."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, Moment, TableOf
from projections.tables.common import (
    Agent,
    AtMs,
    EndedAt,
    ExecutionId,
    HoldId,
    LogOffset,
    LogPartition,
    Project,
    Subject,
    Tenant,
    UpdatedAt,
)

TurnId = Annotated[str, "Id of the turn, and of the message that it answers."]


class TurnRow(TypedDict):
    """One row for each turn of a conversation: a message to an agent, and how far its answer is."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    turn_id: TurnId
    agent: Agent
    status: Annotated[
        str,
        "waiting (for a worker), claimed, suspended (it waits for a person), completed, failed or cancelled.",
    ]
    text: Annotated[str, "The message that it answers."]
    sent_by: Annotated[str, "Who sent the message."]
    attempt_id: Annotated[str | None, "The worker's attempt at it, or the last one."]
    claimed_by: Annotated[str | None, "The subject of that worker."]
    lease_until_ms: Annotated[Moment | None, "When the worker is taken to be lost, unless it says more."]
    claims: Annotated[int, "Number of times that a worker took it on."]
    replies: Annotated[int, "Number of the agent's replies in it."]
    hold_id: Annotated[HoldId | None, "The hold that it waits for."]
    error: Annotated[str | None, "Why it failed or was cancelled."]
    opened_at_ms: Annotated[Moment, "When the message was sent."]
    updated_at_ms: UpdatedAt
    ended_at_ms: EndedAt | None
    log_offset: Annotated[
        int, "Offset of the message; the turns of a conversation are worked on in this order."
    ]
    trace: Annotated[
        str | None, "W3C trace context in which the message was decided; null if it was not traced."
    ]


TURNS = TableOf(
    "turns",
    TurnRow,
    key=("tenant", "project", "execution_id", "turn_id"),
    indices=(
        Index("turns_by_opening", ("tenant", "project", "opened_at_ms")),
        Index("turns_under_way", ("tenant", "project", "agent", "opened_at_ms"), where="ended_at_ms IS NULL"),
    ),
    time="opened_at_ms",
)


class MessageRow(TypedDict):
    """One row for each message of a conversation: one to the agent, and each of its replies."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    turn_id: TurnId
    number: Annotated[int, "0 for the message to the agent; its replies in this turn are counted from 1."]
    role: Annotated[str, "user or assistant."]
    text: Annotated[str, "What was said."]
    details: Annotated[Json, "JSON object that the agent keeps beside the text."]
    subject: Subject
    at_ms: AtMs
    log_partition: LogPartition
    log_offset: LogOffset


MESSAGES = TableOf(
    "messages",
    MessageRow,
    key=("tenant", "project", "execution_id", "log_offset"),
    indices=(Index("messages_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)
