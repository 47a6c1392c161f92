"""Facts about one tool call: proposed, judged, released, consumed, ended."""

from typing import Literal

from schemas.message import Long, Message
from schemas.probe import ProbeResult

Effect = Literal["allow", "hold", "deny"]
RiskLevel = Literal["low", "medium", "high"]
DenialCause = Literal["policy", "rejected", "timeout", "halted", "probe"]


class ToolCallProposed(Message):
    """A revision of a call, with exactly the arguments (RFC 8785 JSON) that it would run with.

    Revision 1 is the agent's proposal; a higher one comes from an edit or a change of the tool. `probe` is JSON of
    `schemas.probe.Probe` if an operator planted the call, which then never runs; else None.
    """

    call_id: str
    revision: Long
    agent: str
    tool: str
    tool_version: str
    arguments: str
    digest: str
    context: str
    claims: str
    reason: str
    by: str
    probe: str | None = None


class PolicyVerdictIssued(Message):
    """What the policy says of a revision. `rules` are `policy@version/rule`; `trust` is JSON or None.

    `trust_class` is what decisions on this call count for (docs/trust.md), empty for nothing. `adaptive` is JSON of
    `schemas.adaptive.AdaptiveOutcome`: what the policy's adaptive block made of a hold, or None if nothing. `history`
    is JSON of `schemas.call_history.CallHistory`: what the past says of the call's values, or None if nothing.
    """

    call_id: str
    revision: Long
    effect: Effect
    rules: tuple[str, ...]
    policy_version: str
    reason: str
    detail: str
    risk_score: float
    risk_level: RiskLevel
    risk_parts: tuple[str, ...]
    risk_required: float
    trust: str | None
    definitions_through: Long
    trust_class: str = ""
    adaptive: str | None = None
    history: str | None = None


class ToolCallReleased(Message):
    """A grant: this revision may run once, until it expires. `released_by` names the cause of the release.

    `decision_id` is the idempotency key for an idempotent tool when its call is released again. `rule_id` is the
    standing rule that released it, or empty. `asked` is JSON of `schemas.requirement.AskedOfEdit` if the editor's own
    approval released the call and the edited call required other people than its hold, else None.
    """

    call_id: str
    revision: Long
    digest: str
    grant_id: str
    decision_id: str
    released_by: Literal["policy", "decision", "rule"]
    arguments: str
    expires_at_ms: Long
    rule_id: str = ""
    asked: str | None = None


class ToolCallDenied(Message):
    """The call will not run."""

    call_id: str
    revision: Long
    cause: DenialCause
    feedback: str
    decision_id: str


class ToolCallCancelled(Message):
    """The call was given up with its execution."""

    call_id: str
    reason: str


class GrantConsumed(Message):
    """The one attempt that may run the call. Without a result by its run deadline the outcome is unknown.

    The outcome is also unknown if the attempt's lease of `lease_ms` ends without a renewal. If `lease_ms` is None,
    only the deadline counts.
    """

    call_id: str
    revision: Long
    digest: str
    attempt_id: str
    run_deadline_at_ms: Long
    by: str
    lease_ms: Long | None = None


class LeaseRenewed(Message):
    """The attempt said that it still runs the call: it is believed until `lease_until_ms`."""

    call_id: str
    attempt_id: str
    lease_until_ms: Long
    by: str


class GrantRevoked(Message):
    """A release was taken back, or was not used in time (`reason` "expired")."""

    call_id: str
    revision: Long
    reason: str
    by: str


class ImpactReported(Message):
    """A person said that the call, which ran or may have run, did harm; its status stays as it is.

    `agent`, `tool` and `trust_class` are the call's, so that readers need not have followed it; `values` are the
    digests of its identifying values (`schemas.call_history`).
    """

    call_id: str
    revision: Long
    agent: str
    tool: str
    trust_class: str
    reason: str
    by: str
    values: tuple[str, ...] = ()


class ProbeEnded(Message):
    """The hold of a planted call ended; the call never ran.

    `result` is `caught` or `missed` by the decision that ended the hold; `expired` or `cancelled` without one.
    `planted_by`, `note` and `wrong` (JSON list) are of `schemas.probe.Probe`. `answers` is JSON of `ProbeAnswer`s, of
    all who voted, in their order.
    """

    call_id: str
    hold_id: str
    revision: Long
    agent: str
    tool: str
    result: ProbeResult
    planted_by: str
    note: str
    wrong: str
    answers: str


class ToolCallSucceeded(Message):
    """The call ran; `output` is JSON."""

    call_id: str
    attempt_id: str
    output: str
    duration_ms: Long
    by: str


class ToolCallFailed(Message):
    """The call ran, or was settled by a person, and failed."""

    call_id: str
    attempt_id: str
    error: str
    duration_ms: Long
    by: str


class ToolCallOutcomeUnknown(Message):
    """Nobody knows whether the call had its effect: a person must look."""

    call_id: str
    attempt_id: str
    reason: str


CALL_EVENTS: tuple[type[Message], ...] = (
    ToolCallProposed,
    PolicyVerdictIssued,
    ToolCallReleased,
    ToolCallDenied,
    ToolCallCancelled,
    GrantConsumed,
    LeaseRenewed,
    GrantRevoked,
    ImpactReported,
    ProbeEnded,
    ToolCallSucceeded,
    ToolCallFailed,
    ToolCallOutcomeUnknown,
)
