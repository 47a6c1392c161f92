"""Every command: what a client, a person or the timer can request of the decider.

Names are imperative. The record's key names the command's aggregate; its signed envelope names the sender.
"""

from typing import Literal, get_args

from schemas.conversation_commands import (
    ClaimTurn,
    EndTurn,
    PostReply,
    RenewTurn,
    SendMessage,
    YieldTurn,
)
from schemas.fields import (
    AttemptId,
    ChosenId,
    ClaimSeconds,
    Count,
    Document,
    ExtensionSeconds,
    Id,
    Json,
    Name,
    Question,
    Reason,
    Request,
    Text,
    ToolName,
)
from schemas.message import Long, Message
from schemas.probe_commands import PlantProbe as PlantProbe

Decision = Literal["approve", "edit", "reject", "respond"]
Scope = Literal["once", "execution", "rule"]
RequestKind = Literal["clarification", "decision", "env_var", "permission"]
RiskOfRequest = Literal["", "low", "medium", "high"]
Outcome = Literal["succeeded", "failed", "unknown"]


class StartExecution(Message):
    """Open an execution: one run of an agent.

    With `idle_ms` it is completed by itself once nothing in it has been open, and nothing was done, for so long.
    """

    agent: ChosenId
    user: Name = ""
    workspace: Name = ""
    request: Request = ""
    context: Json = "{}"
    idle_ms: Long | None = None


class PauseExecution(Message):
    """Let nothing more be judged or run until it is resumed."""

    reason: Text = ""


class ResumeExecution(Message):
    """Go on after a pause."""

    feedback: Text = ""


class CancelExecution(Message):
    """End the execution without a result."""

    reason: Text = ""


class CompleteExecution(Message):
    """End the execution with its result (JSON)."""

    result: Json = "null"


class FailExecution(Message):
    """End the execution with an error."""

    error: Text = ""


class ProposeToolCall(Message):
    """Ask to run a tool. `arguments`, `context` and `claims` are canonical JSON objects.

    `claims` are the annotations that the agent itself gives; they can raise a risk, never lower it. With an
    `attempt_id` the decision that lets the call run consumes its grant for that attempt; a call that is held, or has
    sealed arguments, is consumed later.
    """

    call_id: ChosenId
    tool: ToolName
    arguments: Json
    context: Json = "{}"
    reason: Text = ""
    claims: Json = "{}"
    attempt_id: AttemptId | None = None


class ConsumeGrant(Message):
    """Use a release, once. `attempt_id` is random per process and never derived from the call.

    With `grant_id`, any other release is refused.
    """

    call_id: Id
    digest: Id
    attempt_id: AttemptId
    grant_id: Id = ""


class ReportResult(Message):
    """Say how a consumed call ended. `output` is canonical JSON."""

    call_id: Id
    attempt_id: AttemptId
    outcome: Outcome
    output: Json = "null"
    error: Text = ""
    duration_ms: Count = 0


class RenewLease(Message):
    """Say that the attempt still runs a consumed call. Accepted when no more than half of its lease is left."""

    call_id: Id
    attempt_id: AttemptId


class RevokeGrant(Message):
    """Take back a release that was not consumed yet."""

    call_id: Id
    reason: Text = ""


class ReportImpact(Message):
    """Say that a call which ran, or may have run, did harm."""

    call_id: Id
    reason: Reason


class RequestHumanInput(Message):
    """Ask a person something. `options`, `fields` and `default` are canonical JSON.

    Of a decision: `allow_custom` lets a person answer with a text that is no option, `multiple` with several options.
    Of a permission: the `tool` and the `action` that it is for, its `risk`, and `remember`, which lets a person say
    that the answer is for further times, too. After `remind_after_ms` without an answer, people are reminded.
    """

    request_id: ChosenId
    kind: RequestKind
    question: Question
    options: Json = "[]"
    fields: Json = "[]"
    decision_type: Id = ""
    timeout_ms: Long | None = None
    default: Text | None = None
    allow_custom: bool = False
    multiple: bool = False
    tool: Id = ""
    action: Text = ""
    risk: RiskOfRequest = ""
    remember: bool = False
    remind_after_ms: Long | None = None


class ClaimHold(Message):
    """Tell the others that one is on it, for so many seconds."""

    hold_id: Id
    seconds: ClaimSeconds = 300


class ReleaseHold(Message):
    """Give a claimed hold back."""

    hold_id: Id


class EscalateHold(Message):
    """Ask the roles of the rule's escalation now."""

    hold_id: Id


class DelegateHold(Message):
    """Hand a hold to another subject."""

    hold_id: Id
    to: Name


class ExtendHold(Message):
    """Move a hold's deadline."""

    hold_id: Id
    seconds: ExtensionSeconds


class DecideHold(Message):
    """Decide a hold on exactly the digest that was seen.

    `edited_arguments` and `value` are canonical JSON. `view_digest` names what was shown. The header
    `placet_dwell_ms` says for how long the interface showed it, so that the same decision is the same body at every
    interface; earlier gateways wrote it into `dwell_ms`. `remember` is canonical JSON of what is to be remembered for
    `scope`: services/domain/memory/memory.py.
    """

    hold_id: Id
    decision: Decision
    digest: Id = ""
    edited_arguments: Json | None = None
    feedback: Text = ""
    value: Json | None = None
    scope: Scope = "once"
    view_digest: Id = ""
    dwell_ms: Count | None = None
    remember: Json | None = None


class TakeSecrets(Message):
    """Have the sensitive values of an answered request delivered, once."""

    request_id: Id
    attempt_id: AttemptId


class EraseSecrets(Message):
    """Erase the sensitive values of a call or a request: one of the two is named. Commitments stay."""

    call_id: Id
    request_id: Id
    reason: Text = ""


class ReserveRuleUse(Message):
    """Ask a standing rule for one use. It is sent by the decider of the call's partition."""

    rule_id: Id
    reservation_id: Id
    execution_id: Id
    call_id: Id
    revision: Long
    digest: Id


class SettleReservation(Message):
    """Carry the answer on a use back to its call. `number` is the number of the use, 0 if there is none."""

    call_id: Id
    revision: Long
    reservation_id: Id
    granted: bool
    number: Long
    detail: Text


class ExpireDue(Message):
    """The timer's nudge: something of this execution is due. It contains no decision.

    Its id is derived from subject, deadline and attempt, so that a repeated nudge is the same command.
    """

    subject_id: Id
    deadline_at_ms: Long
    attempt: Long


class PublishPolicy(Message):
    """Publish a version of a policy document (canonical JSON)."""

    name: Id
    document: Document


class RetirePolicy(Message):
    """Take a policy out of force. `version` is the version to retire; 0 means the one in force."""

    name: Id
    version: Count = 0
    reason: Text = ""


class PublishTool(Message):
    """Publish a version of a tool's definition (canonical JSON of the MCP form)."""

    name: Id
    definition: Document


class PublishPrincipal(Message):
    """Publish a version of a principal (canonical JSON): a person or service, its accounts and roles."""

    name: Id
    document: Document


class MakeRule(Message):
    """Make a standing rule (canonical JSON) of a decision. The decider itself sends it."""

    rule_id: Id
    document: Document


class ActivateRule(Message):
    """Let a proposed or suspended standing rule be used."""

    rule_id: Id
    reason: Text = ""


class SuspendRule(Message):
    """Let a standing rule rest. `evidence` is JSON of the contrary decision, if there is one."""

    rule_id: Id
    reason: Text = ""
    evidence: Json = "{}"


class RevokeRule(Message):
    """End a standing rule for good."""

    rule_id: Id
    reason: Text = ""


class DestroyDataKey(Message):
    """Destroy a tenant's data key: everything sealed under it is erased."""

    name: Id
    reason: Text = ""


ExecutionCommand = (
    StartExecution
    | PauseExecution
    | ResumeExecution
    | CancelExecution
    | CompleteExecution
    | FailExecution
    | ProposeToolCall
    | PlantProbe
    | ConsumeGrant
    | ReportResult
    | RenewLease
    | RevokeGrant
    | ReportImpact
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
    | SendMessage
    | ClaimTurn
    | RenewTurn
    | PostReply
    | YieldTurn
    | EndTurn
    | ExpireDue
)
DefinitionCommand = (
    PublishPolicy
    | PublishTool
    | PublishPrincipal
    | MakeRule
    | ActivateRule
    | SuspendRule
    | RevokeRule
    | DestroyDataKey
    | RetirePolicy
)

COMMANDS: tuple[type[Message], ...] = (
    *get_args(ExecutionCommand),
    *get_args(DefinitionCommand),
    ReserveRuleUse,
)
