"""The input and the output of `judge`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from schemas.call_history import NO_HISTORY, CallHistory
from schemas.commands import RequestKind
from schemas.policy_document import Effect
from schemas.requirement import Requirement
from services.domain.policy.risk import Risk

Reason = Literal[
    "matched",
    "no_policy",
    "no_match",
    "unknown_tool",
    "policy_error",
    "policy_timeout",
    "remembered",
    "trusted",
]
OnTimeoutWord = Literal["deny", "halt", "escalate", "wait", "default"]
OnReject = Literal["feedback", "halt", "rollback"]
OPTIONS = ("approve", "edit", "reject")
STRICTNESS: dict[Effect, int] = {"allow": 0, "hold": 1, "deny": 2}


def nothing_approved() -> str:
    """No approval of calls of other classes is known."""
    return ""


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a call, with everything that the decider knows about it.

    `tool_definition` is the published one, None for an unknown tool; `tool_version` its SHA-256. `arguments`,
    `context` and `claimed_annotations` are parsed JSON; `proposed_arguments` are the agent's own if a person has
    edited them. `trust` is None until all its parts are complete. `memory` maps arguments to the values that people
    have approved for such calls by standing rules. `trust_class` is what decisions on it count for; `history` is what
    the past says of its values. `approved_otherwise` tells people of approvals that are of calls of other classes: it
    is called only where none is of the call's own.
    """

    tenant: str
    project: str
    tool: str
    agent: str
    user: str = ""
    workspace: str = ""
    tool_definition: Mapping[str, Any] | None = None
    tool_version: str = ""
    arguments: Mapping[str, Any] = {}
    proposed_arguments: Mapping[str, Any] | None = None
    claimed_annotations: Mapping[str, Any] = {}
    execution_id: str = ""
    request: str = ""
    context: Any = None
    trust: Mapping[str, Any] | None = None
    memory: Mapping[str, Sequence[Any]] = {}
    trust_class: str = ""
    history: CallHistory = NO_HISTORY
    approved_otherwise: Callable[[], str] = nothing_approved


class HoldTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a hold. Without roles and reviewers: any reviewer. `excluded` can never decide.

    `requirements` are, if several rules ask, those that the approvers must meet (`services.domain.policy.needed`).

    `on_timeout_default` is JSON of the text that the agent gets, None for none.
    `remember` is JSON of what an approval can be remembered for (`schemas.policy_document`), None for nothing.
    """

    kind: RequestKind = "permission"
    question: str
    options: tuple[str, ...] = OPTIONS
    roles: tuple[str, ...] = ()
    quorum: int = 1
    exclude_requester: bool = False
    timeout_ms: int | None = 900_000
    on_timeout: OnTimeoutWord = "deny"
    on_timeout_default: str | None = None
    escalate_after_ms: int | None = None
    escalate_roles: tuple[str, ...] = ()
    on_reject: OnReject = "feedback"
    reviewers: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    remember: str | None = None
    requirements: tuple[Requirement, ...] = ()
    remind_after_ms: int | None = None


class AdaptiveAnswer(msgspec.Struct, frozen=True):
    """What an adaptive block says of a held call.

    `is_eligible`: trust may release it; else `why` says why people are asked. `floor` is None if the policy always
    asks at this level of risk.
    """

    is_eligible: bool
    why: str
    lower_bound: float | None
    required: float
    floor: float | None
    sample_rate: float


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The policy's verdict on a call. `hold` is set exactly when the effect is hold.

    `rules` are `policy@version/rule`; `policy_version` is `policy@version`, empty if no policy applies. `adaptive`
    is what the policy's adaptive block says of a hold, None if it has none.
    """

    effect: Effect
    rules: tuple[str, ...]
    policy_version: str
    risk: Risk
    trust: Mapping[str, Any] | None
    reason: Reason
    detail: str
    hold: HoldTerms | None
    trust_class: str = ""
    adaptive: AdaptiveAnswer | None = None
    history: CallHistory = NO_HISTORY
