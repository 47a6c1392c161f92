"""Executions and their tool calls, with verdict, decision and grant."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.resources.base import Resource
from gateway.resources.probes import EndedProbe
from gateway.resources.secrets import DeliveredSecret
from schemas.commands import Decision as DecisionWord
from schemas.events.calls import DenialCause, Effect, RiskLevel

CallStatus = Literal[
    "proposed",
    "held",
    "released",
    "denied",
    "cancelled",
    "expired",
    "revoked",
    "consumed",
    "succeeded",
    "failed",
    "outcome_unknown",
]
# `waiting_correction` is reserved for a wait that no event opens yet; clients already have the word.
ExecutionState = Literal[
    "running",
    "paused",
    "waiting_clarification",
    "waiting_correction",
    "waiting_approval",
    "resumed",
    "completed",
    "failed",
    "cancelled",
]


class Risk(Resource):
    """The risk of a call: how much harm it could do."""

    score: float
    level: RiskLevel
    parts: list[str]
    required: float


class Adaptive(Resource):
    """What the policy's adaptive block made of a hold: trust released it, would have, or did not (docs/trust.md)."""

    result: Literal["released", "sampled", "asked"]
    why: str
    lower_bound: float | None
    required: float
    floor: float | None
    sample_rate: float
    seed: str
    draw: float | None


class CallHistory(Resource):
    """What the past says of a call's values (docs/trust.md): `numbers` are path, least and greatest, each."""

    parts: list[str]
    novel: list[str]
    tainted: list[str]
    sources: list[str]
    values: list[str]
    numbers: list[list[str | float]]
    is_whole: bool
    is_known: bool
    opposed: list[str] = Field(default_factory=list)
    apart: list[str] = Field(default_factory=list)


class Verdict(Resource):
    """The policy's verdict on a call.

    `risk` is that of the tool, by which rules decide; `risk_with_values` has what new and tainted values add, which
    trust must outweigh; it is null where they add nothing.
    """

    effect: Effect
    rules: list[str]
    risk: Risk | None
    risk_with_values: Risk | None = None
    trust: Any
    adaptive: Adaptive | None
    history: CallHistory | None
    policy_version: str | None
    reason: str | None
    detail: str | None


class Decision(Resource):
    """A person's decision."""

    decision_id: str
    decision: DecisionWord
    by: str
    at: datetime
    feedback: str | None


class Grant(Resource):
    """The permission to run exactly one digest, once.

    `token` is the signed grant, for a tool server: it is present only while the call is released, only for callers
    who may consume the grant, and not in lists. `rule_id` is the standing rule that released the call in a person's
    place.
    """

    digest: str
    expires_at: datetime
    token: str | None
    grant_id: str
    released_by: Literal["policy", "decision", "rule"]
    decision_id: str
    rule_id: str | None


class JsonWebKey(BaseModel):
    """An Ed25519 public key (RFC 8037)."""

    # RFC 7517: a key and a set can have further members, which whoever does not know them leaves alone.
    model_config = ConfigDict(extra="allow")

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: str
    kid: str
    use: Literal["sig"]
    alg: Literal["EdDSA"]


class JsonWebKeySet(BaseModel):
    """The keys that sign grants (RFC 7517); former keys stay, so that their grants can be verified."""

    model_config = ConfigDict(extra="allow")

    keys: list[JsonWebKey]


class Edit(Resource):
    """A person's change of a call's arguments: `patch` (RFC 6902) makes those of `revision` from the earlier ones.

    A patch over 32 KiB is null: the event of the decision has all of the edited arguments.
    """

    revision: int
    decision_id: str
    by: str
    at: datetime
    feedback: str
    patch: list[dict[str, Any]] | None


class ToolCall(Resource):
    """A tool call as it is now.

    `denied_because` is the cause of a denial. `rollback` names the calls that the agent should undo after this call's
    rejection, newest first; their status does not change. A consumed call that has no result by `run_deadline_at`
    waits for a person. `edits` are people's newest changes of its arguments, up to 64 KiB, oldest first. An attempt
    that runs the call must send a heartbeat (`POST …/heartbeat`) before `lease_until`; else the call's outcome
    counts as unknown. `impact_reports` counts the people who have reported that the call did harm. `probe` is set
    once people have answered to a call that an operator planted; it never runs. A sensitive argument is shown as
    `{handle, commitment}`; `secrets` has its value, only in the answer to a consumption.
    """

    tenant: str
    project: str
    execution_id: str
    call_id: str
    revision: int
    agent: str
    tool: str
    tool_version: str
    arguments: dict[str, Any]
    digest: str
    approved_arguments: dict[str, Any] | None
    edits: list[Edit]
    reason: str
    status: CallStatus
    verdict: Verdict | None
    hold_id: str | None
    deadline_at: datetime | None
    decision: Decision | None
    grant: Grant | None
    denied_because: DenialCause | None
    feedback: str | None
    lease_until: datetime | None
    lease_seconds: float | None
    rollback: list[str] | None
    attempt_id: str | None
    run_deadline_at: datetime | None
    output: Any
    error: str | None
    duration_ms: int | None
    impact_reports: int
    probe: EndedProbe | None
    proposed_at: datetime | None
    updated_at: datetime | None
    ended_at: datetime | None
    secrets: list[DeliveredSecret] | None = None
    cursor: str | None = None


class Execution(Resource):
    """One run of an agent."""

    tenant: str
    project: str
    execution_id: str
    state: ExecutionState = Field(
        description="`waiting_correction` is reserved: it does not occur in this version"
    )
    agent: str
    user: str
    workspace: str
    request: str
    context: dict[str, Any]
    version: int
    calls: int
    open_holds: int
    result: Any
    error: str | None
    reason: str | None
    started_by: str
    ended_by: str | None
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    cursor: str | None = None
