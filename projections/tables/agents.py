"""The counters behind trust."""

from typing import Annotated, Literal, TypedDict, get_args

from projections.tables.columns import Moment, TableOf
from projections.tables.common import Agent, Project, Tenant

Counter = Literal[
    "proposed",
    "allowed",
    "held",
    "denied",
    "approved",
    "edited",
    "rejected",
    "votes",
    "succeeded",
    "failed",
    "unknown",
    "refused",
]
COUNTERS: tuple[Counter, ...] = get_args(Counter)


class AgentRow(TypedDict):
    """What each agent did with each tool, in counts."""

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Annotated[str, "The tool's name; empty where refused commands are counted."]
    proposed: Annotated[int, "Calls that it proposed."]
    allowed: Annotated[int, "Verdicts that let a call go."]
    held: Annotated[int, "Verdicts that held a call."]
    denied: Annotated[int, "Verdicts that denied a call."]
    approved: Annotated[
        int, "Decisions that let a held call run as it was: one a hold, however many people it took."
    ]
    edited: Annotated[int, "Decisions that changed a held call."]
    rejected: Annotated[int, "Decisions against a held call."]
    votes: Annotated[int, "Words of people on its holds, also those that waited for others."]
    succeeded: Annotated[int, "Runs that succeeded."]
    failed: Annotated[int, "Runs that failed."]
    unknown: Annotated[int, "Runs whose outcome nobody knew."]
    refused: Annotated[int, "Commands that were refused."]
    last_seen_at_ms: Annotated[Moment, "When it was last counted."]


AGENTS = TableOf(
    "agents",
    AgentRow,
    key=("tenant", "project", "agent", "tool"),
    merge={**dict.fromkeys(COUNTERS, "sum"), "last_seen_at_ms": "max"},
)
