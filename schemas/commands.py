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
    """Tell the others that one is on it."""

    hold_id: str


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

    `edited_arguments` and `value` are canonical JSON.
    """

    hold_id: str
    decision: Decision
    digest: str = ""
    edited_arguments: str | None = None
    feedback: str = ""
    value: str | None = None
    scope: Scope = "once"


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
    | RevokeGrant
    | RequestHumanInput
    | ClaimHold
    | ReleaseHold
    | EscalateHold
    | DelegateHold
    | ExtendHold
    | DecideHold
    | ExpireDue
)
DefinitionCommand = PublishPolicy | PublishTool

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
)
