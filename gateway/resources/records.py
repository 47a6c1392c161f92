"""Records and statistics from the log: events, the audit trail, agents, reviewers, dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.resources.base import Resource
from schemas.trust import FactKind

CURSOR = "Give it as `after` to read a state that is no older."


class Event(Resource):
    """A recorded event."""

    event_id: str
    type: str
    at: datetime
    version: int
    term: int
    partition: int
    offset: int
    execution_id: str
    command_id: str
    data: dict[str, Any]
    cursor: str | None = None


class AuditRow(Resource):
    """An act of authority: the subject, the object, and the result."""

    event_id: str
    at: datetime
    subject: str
    action: str
    execution_id: str | None
    call_id: str | None
    hold_id: str | None
    digest: str
    before: Any
    after: Any
    feedback: str
    view_digest: str | None
    dwell_ms: int | None
    result: Any


class AgentTool(Resource):
    """An agent's activity with a tool."""

    tool: str
    proposed: int
    allowed: int
    held: int
    denied: int
    approved: int
    edited: int
    rejected: int
    votes: int
    succeeded: int
    failed: int
    unknown: int
    refused: int
    last_seen_at: datetime


class Agent(Resource):
    """An agent's activity, by tool."""

    agent: str
    tools: list[AgentTool]


class ToolTrust(Resource):
    """The number of an agent's calls of a tool by outcome, and of people's decisions on them."""

    tool: str
    successes: int
    failures: int
    unknowns: int
    approvals: int
    edits: int
    rejections: int
    last_evidence_at: datetime


class AgentTrust(Resource):
    """The statistics of docs/trust.md; `through` is, per partition of the log, the last offset that is counted.

    `complete` is false while this gateway is still reading them, and while they do not reach where the log ended 15
    seconds ago: then the numbers may be too low, and nothing is released by trust.
    """

    agent: str
    complete: bool
    through: dict[str, int]
    tools: list[ToolTrust]
    cursor: str | None = None


class TrustFact(Resource):
    """One fact, its place in the log, and what it adds to `raising` and to `lowering`.

    `uncounted` says why a fact that could raise trust does not: the account is withdrawn, the person proposed the
    call, trust was begun anew since, or it is too old.
    """

    kind: Annotated[FactKind, Field(description="What it says of the call.")]
    at: Annotated[datetime, Field(description="When it happened, by the log's time.")]
    by: Annotated[
        list[str], Field(description="The accounts whose word it is; empty for a failure or a withdrawal.")
    ]
    requester: Annotated[str | None, Field(description="The account that proposed the call.")]
    execution_id: Annotated[str, Field(description="The run of the call.")]
    call_id: Annotated[str, Field(description="The call in its run.")]
    partition: Annotated[int, Field(description="Partition of the log.")]
    offset: Annotated[int, Field(description="Offset in the partition.")]
    raising: Annotated[
        float, Field(description="What it adds to `raising` of the class, by its age; 0 if it adds nothing.")
    ]
    lowering: Annotated[float, Field(description="What it adds to `lowering` of the class, by its age.")]
    uncounted: Annotated[
        Literal["withdrawn_account", "own_proposal", "before_it_began_anew", "too_old"] | None,
        Field(description="Why it does not raise trust although a fact of its kind can."),
    ] = None


class TrustClass(Resource):
    """The trust in an agent's calls of one class: the lower bound that a policy compares (docs/trust.md).

    `facts` is the number of facts; `evidence` lists them if one tool was asked for.
    """

    tool: Annotated[str, Field(description="The tool's name.")]
    trust_class: Annotated[str, Field(description="The class, as verdicts record it.")]
    lower_bound: Annotated[
        float, Field(description="The lower credible bound of trust, rounded down to six digits.")
    ]
    required: Annotated[
        float | None,
        Field(
            description="The trust that the parts of the risk in the class require, as `risk.required` of such "
            "calls. The floor and `allow_when` of a policy are not part of it. Null if the class has a part of "
            "another version."
        ),
    ]
    raising: Annotated[float, Field(description="The weights of the facts that raise it, together.")]
    lowering: Annotated[float, Field(description="The weights of the facts that lower it, together.")]
    facts: Annotated[int, Field(description="How many facts there are, also those that add nothing.")]
    evidence: Annotated[
        list[TrustFact],
        Field(description="The facts in the order of time, if one tool was asked for; else empty."),
    ]


class ExplainedTrust(Resource):
    """The trust in an agent at a moment, by classes of its calls.

    `lower_bound` is that of all classes together, to compare agents by; no call is released by it. `complete` is as
    in `AgentTrust`, and always about now: while it is false, nothing is released by trust.
    """

    agent: Annotated[str, Field(description="The agent's name.")]
    at: Annotated[datetime, Field(description="The time for which trust is computed.")]
    complete: Annotated[
        bool,
        Field(
            description="False while trust is missing now; the classes are counted from the views all the same."
        ),
    ]
    lower_bound: Annotated[float, Field(description="That of all classes together.")]
    classes: Annotated[
        list[TrustClass],
        Field(description="Every class that has facts with weight, or those of the tool; or a page of them."),
    ]
    next_cursor: Annotated[
        str | None, Field(description="The cursor of the next page of the classes; null on the last one.")
    ]
    cursor: Annotated[str | None, Field(description=CURSOR)] = None


class HeldCalls(Resource):
    """Calls for which trust was weighed, by what became of them; `saved` is the share that nobody was asked about.

    That is each judgement of a call that a rule holds under a policy with an adaptive block. Calls that only a policy
    without one holds are in none of the numbers.
    """

    held: Annotated[
        int,
        Field(
            description="Judgements for which trust was weighed, the sum of the next three: not the calls that were "
            "held, since those that trust released are among them, and those of policies without an adaptive block "
            "are not. A call that is judged again, as after an edit or a change of its tool, counts once more."
        ),
    ]
    released: Annotated[int, Field(description="Those that trust released without asking.")]
    sampled: Annotated[
        int,
        Field(description="Those that it would have released, and that people were asked about as a sample."),
    ]
    asked: Annotated[int, Field(description="The others: people were asked about them.")]
    interruptions: Annotated[int, Field(description="How often people were asked: `sampled` and `asked`.")]
    saved: Annotated[
        float | None,
        Field(description="The share of `held` that nobody was asked about; null if there was none."),
    ]


class AgentHeldCalls(HeldCalls):
    """The same of one agent."""

    agent: Annotated[str, Field(description="The agent's name.")]


class Share(Resource):
    """A share, None without cases, and the exact interval in which it is with this confidence."""

    share: Annotated[float | None, Field(description="The share; null without cases.")]
    lower: Annotated[float, Field(description="The lower end of the interval.")]
    upper: Annotated[float, Field(description="The upper end of the interval.")]
    confidence: Annotated[float, Field(description="The confidence of the interval, from 0 to 1.")]


class SampledCalls(Share):
    """Of the sampled calls that people have decided: those that they did not approve unchanged.

    Those on which people said nothing are in no share; trust counts the withdrawn ones against the agent.
    """

    decided: Annotated[int, Field(description="Sampled calls that people have decided.")]
    contrary: Annotated[int, Field(description="Of these, those that they did not approve unchanged.")]
    withdrawn: Annotated[
        int, Field(description="Sampled calls that were cancelled with their run before people had decided.")
    ]
    expired: Annotated[
        int, Field(description="Sampled calls whose deadline passed before people had decided.")
    ]
    waiting: Annotated[int, Field(description="Sampled calls that wait for people now.")]


class Regret(Share):
    """Of the calls that trust released: those that people took back or reported harm of."""

    released: Annotated[int, Field(description="Calls that trust released.")]
    revoked: Annotated[int, Field(description="Of the released, those that people took back.")]
    harmful: Annotated[int, Field(description="Of the released, those that people reported harm of.")]


class ApprovalMetrics(HeldCalls):
    """The effect of adaptive approval in a period."""

    since: Annotated[datetime, Field(description="The beginning of the period.")]
    until: Annotated[datetime, Field(description="The time now.")]
    sample: SampledCalls
    regret: Regret
    agents: list[AgentHeldCalls]
    cursor: Annotated[str | None, Field(description=CURSOR)] = None


class AnsweredProbes(Share):
    """The planted calls that a person answered to: the share that was `missed`, with its interval."""

    answered: int
    missed: int


class Reviewer(Resource):
    """A person who decided holds: the number of decisions of each kind, and how they were made.

    `average_wait_ms` is the time from the opening of a hold to the decision, `average_dwell_ms` the time that a hold
    was on the screen, as far as it was measured. Of `measured_approvals`, `quick_approvals` took less than 3 s.
    `probes` is null if the person answered to no planted call.
    """

    reviewer: str
    approved: int
    edited: int
    rejected: int
    answered: int
    last_decided_at: datetime
    average_wait_ms: int
    average_dwell_ms: int | None
    measured_approvals: int
    quick_approvals: int
    quick_share: float | None
    probes: AnsweredProbes | None


class DeadLetter(Resource):
    """A record that could not be read or verified, and its position in the log.

    `key` and `detail` are null if the record belongs to another tenant.
    """

    id: str
    topic: str
    partition: int
    offset: int
    at: datetime
    key: str | None
    reason: str
    detail: str | None
