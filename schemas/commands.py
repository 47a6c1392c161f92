"""Every command: what a client, a person or the timer may ask of the decider.

Names are imperative. The aggregate a command is for is its record's key; who asks is in its signed envelope.
"""

from typing import Literal

from schemas.message import Long, Message

Decision = Literal["approve", "edit", "reject", "respond"]
Scope = Literal["once", "execution", "rule"]
RequestKind = Literal["clarification", "decision", "env_var", "permission"]
Outcome = Literal["succeeded", "failed", "unknown"]


class StartExecution(Message):
    """Open an execution: one run of an agent."""

    agent: str
    user: str = ""
    workspace: str = ""
    request: str = ""
    context: str = "{}"


class PauseExecution(Message):
    """Let nothing more be judged or run until it is resumed."""

    reason: str = ""


class ResumeExecution(Message):
    """Go on after a pause."""

    feedback: str = ""


class CancelExecution(Message):
    """End the execution without a result."""

    reason: str = ""


class CompleteExecution(Message):
    """End the execution with its result (JSON)."""

    result: str = "null"


class FailExecution(Message):
    """End the execution with an error."""

    error: str = ""


class ProposeToolCall(Message):
    """Ask to run a tool. `arguments`, `context` and `claims` are canonical JSON objects.

    `claims` are the annotations that the agent itself gives; they can raise a risk, never lower it.
    """

    call_id: str
    tool: str
    arguments: str
    context: str = "{}"
    reason: str = ""
    claims: str = "{}"


class ConsumeGrant(Message):
    """Use a release, once. `attempt_id` is random per process and never derived from the call."""

    call_id: str
    digest: str
    attempt_id: str


class ReportResult(Message):
    """Say how a consumed call ended. `output` is canonical JSON."""

    call_id: str
    attempt_id: str
    outcome: Outcome
    output: str = "null"
    error: str = ""
    duration_ms: Long = 0


class RenewLease(Message):
    """Say that the attempt still runs a consumed call. Taken once no more than half of its lease is left."""

    call_id: str
    attempt_id: str


class RevokeGrant(Message):
    """Take back a release that was not consumed yet."""

    call_id: str
    reason: str = ""


class RequestHumanInput(Message):
    """Ask a person something. `options`, `fields` and `default` are canonical JSON."""

    request_id: str
    kind: RequestKind
    question: str
    options: str = "[]"
    fields: str = "[]"
    decision_type: str = ""
    timeout_ms: Long | None = None
    default: str | None = None


class ClaimHold(Message):
    """Tell the others that one is on it, for so many seconds."""

    hold_id: str
    seconds: Long = 300


class ReleaseHold(Message):
    """Give a claimed hold back."""

    hold_id: str


class EscalateHold(Message):
    """Ask the roles of the rule's escalation now."""

    hold_id: str


class DelegateHold(Message):
    """Hand a hold to another subject."""

    hold_id: str
    to: str


class ExtendHold(Message):
    """Move a hold's deadline."""

    hold_id: str
    seconds: Long


class DecideHold(Message):
    """Decide a hold on exactly the digest that was seen.

    `edited_arguments` and `value` are canonical JSON. `view_digest` names what was shown, and `dwell_ms` how long the
    door had it on show. `remember` is canonical JSON of what `scope` is to remember: services/domain/remembering.py.
    """

    hold_id: str
    decision: Decision
    digest: str = ""
    edited_arguments: str | None = None
    feedback: str = ""
    value: str | None = None
    scope: Scope = "once"
    view_digest: str = ""
    dwell_ms: Long | None = None
    remember: str | None = None


class TakeSecrets(Message):
    """Have the sensitive values of an answered request delivered, once."""

    request_id: str
    attempt_id: str


class EraseSecrets(Message):
    """Erase the sensitive values of a call or a request: one of the two is named. Commitments stay."""

    call_id: str
    request_id: str
    reason: str = ""


class ReserveRuleUse(Message):
    """Ask a standing rule for one use. The decider of the call's partition asks; the rule's partition answers."""

    rule_id: str
    reservation_id: str
    execution_id: str
    call_id: str
    revision: Long
    digest: str


class SettleReservation(Message):
    """Carry the answer on a use back to its call. `number` is which use it is, 0 for none."""

    call_id: str
    revision: Long
    reservation_id: str
    granted: bool
    number: Long
    detail: str


class ExpireDue(Message):
    """The timer's nudge: something of this execution is due. It carries no decision of its own.

    Its id is made of subject, deadline and attempt, so that a repeated nudge is one nudge.
    """

    subject_id: str
    deadline_at_ms: Long
    attempt: Long


class PublishPolicy(Message):
    """Publish a version of a policy document (canonical JSON)."""

    name: str
    document: str


class PublishTool(Message):
    """Publish a version of a tool's definition (canonical JSON of the MCP form)."""

    name: str
    definition: str


class PublishPrincipal(Message):
    """Publish a version of a principal (canonical JSON): a person or service, its accounts and roles."""

    name: str
    document: str


class MakeRule(Message):
    """Make a standing rule (canonical JSON) of a decision. The decider itself asks."""

    rule_id: str
    document: str


class ActivateRule(Message):
    """Let a proposed or suspended standing rule be used."""

    rule_id: str
    reason: str = ""


class SuspendRule(Message):
    """Let a standing rule rest. `evidence` is JSON of the contrary decision, where there is one."""

    rule_id: str
    reason: str = ""
    evidence: str = "{}"


class RevokeRule(Message):
    """End a standing rule for good."""

    rule_id: str
    reason: str = ""


class DestroyDataKey(Message):
    """Destroy a tenant's data key: everything sealed under it is erased."""

    name: str
    reason: str = ""


ExecutionCommand = (
    StartExecution
    | PauseExecution
    | ResumeExecution
    | CancelExecution
    | CompleteExecution
    | FailExecution
    | ProposeToolCall
    | ConsumeGrant
    | ReportResult
    | RenewLease
    | RevokeGrant
    | RequestHumanInput
    | ClaimHold
    | ReleaseHold
    | EscalateHold
    | DelegateHold
    | ExtendHold
    | DecideHold
    | TakeSecrets
    | EraseSecrets
    | SettleReservation
    | ExpireDue
)
RuleUseCommand = ReserveRuleUse
DefinitionCommand = (
    PublishPolicy
    | PublishTool
    | PublishPrincipal
    | MakeRule
    | ActivateRule
    | SuspendRule
    | RevokeRule
    | DestroyDataKey
)

COMMANDS: tuple[type[Message], ...] = (
    StartExecution,
    PauseExecution,
    ResumeExecution,
    CancelExecution,
    CompleteExecution,
    FailExecution,
    ProposeToolCall,
    ConsumeGrant,
    ReportResult,
    RenewLease,
    RevokeGrant,
    RequestHumanInput,
    ClaimHold,
    ReleaseHold,
    EscalateHold,
    DelegateHold,
    ExtendHold,
    DecideHold,
    ExpireDue,
    PublishPolicy,
    PublishTool,
    PublishPrincipal,
    MakeRule,
    ActivateRule,
    SuspendRule,
    RevokeRule,
    DestroyDataKey,
    ReserveRuleUse,
    SettleReservation,
    TakeSecrets,
    EraseSecrets,
)
