"""Facts about holds, in which a call or a request waits for a person's decision."""

from typing import Literal

from schemas.canonical import canonical
from schemas.commands import Decision, RequestKind, RiskOfRequest, Scope
from schemas.message import Long, Message
from schemas.refusals import Refusal

HoldCause = Literal["policy", "request", "outcome_unknown", "definition_changed"]
OnTimeout = Literal["deny", "halt", "escalate", "wait", "default"]
OnReject = Literal["feedback", "halt", "rollback"]


class HoldOpened(Message):
    """Something waits for a person.

    For a call, `call_id`, `revision` and `digest` say what would run. For a request, `request_id` is set.
    `options`, `input_schema` and `default_value` are JSON. Without a deadline (None) it waits for ever. The
    `reviewers` can decide, and anyone with one of the `roles`; the `excluded` cannot. `view_digest` is the digest of
    the text that reviewers are shown, in the form of `view_version`. `remember` is JSON of what a decision can be
    remembered for, or None. `requirements` is JSON of what each of several rules requires (`schemas.requirement`);
    None if one rule alone applies. At `remind_at_ms` people are reminded of it (None: never).
    """

    hold_id: str
    call_id: str
    request_id: str
    revision: Long
    digest: str
    kind: RequestKind
    cause: HoldCause
    question: str
    options: str
    input_schema: str
    requester: str
    roles: tuple[str, ...]
    quorum: Long
    exclude_requester: bool
    deadline_at_ms: Long | None
    on_timeout: OnTimeout
    default_value: str | None
    escalate_at_ms: Long | None
    escalate_roles: tuple[str, ...]
    on_reject: OnReject
    reviewers: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    view_digest: str = ""
    risk_level: str = ""
    remember: str | None = None
    requirements: str | None = None
    view_version: Long = 1
    remind_at_ms: Long | None = None


class HoldClaimed(Message):
    """A reviewer is on it; from `until_ms` on another may claim it (None: not before it is given back)."""

    hold_id: str
    by: str
    until_ms: Long | None = None


class HoldUnclaimed(Message):
    """The reviewer gave it back."""

    hold_id: str
    by: str


class HoldDelegated(Message):
    """The hold was handed to another subject. `roles` are those of the delegator, `person` is their principal."""

    hold_id: str
    by: str
    to: str
    roles: tuple[str, ...] = ()
    person: str = ""


class HoldExtended(Message):
    """The deadline was moved."""

    hold_id: str
    by: str
    deadline_at_ms: Long


class HoldEscalated(Message):
    """Others are asked from now on; a deadline that passed starts again (None: no deadline)."""

    hold_id: str
    by: str
    roles: tuple[str, ...]
    deadline_at_ms: Long | None


class HoldReminded(Message):
    """Nobody has decided by the time at which people are reminded, once."""

    hold_id: str


class HoldExpired(Message):
    """Nobody decided in time; `on_timeout` says what followed, in the same batch."""

    hold_id: str
    on_timeout: OnTimeout


class HoldCancelled(Message):
    """What the hold was about is gone."""

    hold_id: str
    reason: str


class DecisionRecorded(Message):
    """A person's word on one digest. `resolves` is true if it ended the hold.

    `edited_arguments`, `value` and `remember` are JSON. `person` is the principal whose account `by` is, or empty if
    none is published. `view_digest` is the digest of the view that the reviewer reports to have seen.
    """

    decision_id: str
    hold_id: str
    call_id: str
    revision: Long
    digest: str
    decision: Decision
    by: str
    roles: tuple[str, ...]
    feedback: str
    edited_arguments: str | None
    value: str | None
    scope: Scope
    resolves: bool
    person: str = ""
    view_digest: str = ""
    dwell_ms: Long | None = None
    remember: str | None = None


class DecisionRefused(Message):
    """A late, duplicate, conflicting, unauthorised or stale decision: kept, and without effect."""

    hold_id: str
    decision: Decision
    digest: str
    code: Refusal
    detail: str
    winning_decision_id: str
    by: str


class HumanInputRequested(Message):
    """An agent asks a person. `options` and `fields` are JSON; the others are as in `RequestHumanInput`."""

    request_id: str
    hold_id: str
    kind: RequestKind
    question: str
    options: str
    fields: str
    decision_type: str
    by: str
    allow_custom: bool = False
    multiple: bool = False
    tool: str = ""
    action: str = ""
    risk: RiskOfRequest = ""
    remember: bool = False


ASKS = ("allow_custom", "multiple", "tool", "action", "risk", "remember")


def asks_of(asked: HumanInputRequested) -> str:
    """What a request's answer can be and what it is about, beside its options and fields: canonical JSON."""
    return canonical({name: getattr(asked, name) for name in ASKS})


class HumanInputProvided(Message):
    """The answer (JSON) of a person, or of the default when the time ran out."""

    request_id: str
    hold_id: str
    response: str
    by: str
    timed_out: bool


class RollbackStarted(Message):
    """A rejection hands the branch to its compensation: what had succeeded in the run, newest first."""

    hold_id: str
    call_id: str
    calls: tuple[str, ...]
    by: str


class SecretsDelivered(Message):
    """The sensitive values of an answered request were delivered; until `until_ms` the same attempt may ask again."""

    request_id: str
    attempt_id: str
    until_ms: Long
    by: str


class SecretsErased(Message):
    """The sensitive values of a call or a request were erased; their commitments stay."""

    call_id: str
    request_id: str
    reason: str
    by: str


# The events that move a hold's deadline.
DeadlineMoved = HoldExtended | HoldEscalated

HOLD_EVENTS: tuple[type[Message], ...] = (
    HoldOpened,
    HoldClaimed,
    HoldUnclaimed,
    HoldDelegated,
    HoldExtended,
    HoldReminded,
    HoldEscalated,
    HoldExpired,
    HoldCancelled,
    DecisionRecorded,
    DecisionRefused,
    HumanInputRequested,
    HumanInputProvided,
    RollbackStarted,
    SecretsDelivered,
    SecretsErased,
)
