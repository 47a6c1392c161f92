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
    """Counts of what each agent did with each tool."""

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Annotated[str, "The tool's name; empty in the rows that count refused commands."]
    proposed: Annotated[int, "Calls that it proposed."]
    allowed: Annotated[int, "Verdicts that allowed a call."]
    held: Annotated[int, "Verdicts that held a call."]
    denied: Annotated[int, "Verdicts that denied a call."]
    approved: Annotated[
        int, "Decisions that released a held call unchanged: one for each hold, whatever its quorum."
    ]
    edited: Annotated[int, "Decisions that changed a held call."]
    rejected: Annotated[int, "Decisions against a held call."]
    votes: Annotated[int, "Votes of people on its holds, including those that did not end the hold."]
    succeeded: Annotated[int, "Runs that succeeded."]
    failed: Annotated[int, "Runs that failed."]
    unknown: Annotated[int, "Runs with an unknown outcome."]
    refused: Annotated[
        int,
        "Commands on its runs that were refused, whoever sent them: also a reviewer's late vote. None on runs of "
        "planted calls (docs/probes.md).",
    ]
    last_seen_at_ms: Annotated[Moment, "When a count last changed."]


AGENTS = TableOf(
    "agents",
    AgentRow,
    key=("tenant", "project", "agent", "tool"),
    merge={**dict.fromkeys(COUNTERS, "sum"), "last_seen_at_ms": "max"},
)
