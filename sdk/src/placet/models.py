"""The answers of Placet as frozen dataclasses. Each keeps the received object in `raw`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Object = Mapping[str, Any]
PENDING = frozenset({"proposed", "held"})


@dataclass(frozen=True)
class Risk:
    """How much a call could do: `score` and `required` from 0 to 1, `level` low, medium or high."""

    score: float = 0.0
    level: str = ""
    parts: tuple[Any, ...] = field(default=(), hash=False)
    required: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The policy's verdict; what its `adaptive` block made of a hold; its values' `history`, and what that adds."""

    effect: str = ""
    rules: tuple[str, ...] = ()
    risk: Risk | None = None
    trust: Any = field(default=None, hash=False)
    adaptive: Any = field(default=None, hash=False)
    history: Any = field(default=None, hash=False)
    policy_version: Any = field(default=None, hash=False)
    reason: str = ""
    risk_with_values: Risk | None = None
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Decision:
    """A person's decision: approve, edit, reject or respond."""

    decision: str
    decision_id: str = ""
    by: str = ""
    at: datetime | None = None
    feedback: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Grant:
    """The permission to run exactly one digest, once, until it expires."""

    digest: str
    expires_at: datetime | None = None
    token: str = field(default="", repr=False)
    decision_id: str = ""
    rule_id: str = ""
    grant_id: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Edit:
    """A change of arguments by a person: `patch` (RFC 6902) makes those of `revision`; None if it is too large."""

    revision: int
    by: str
    patch: tuple[Any, ...] | None = field(default=(), hash=False)
    feedback: str = ""
    decision_id: str = ""
    at: datetime | None = None
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool in its current state; `edits` are people's changes of its arguments, oldest first."""

    execution_id: str
    call_id: str
    status: str
    tool: str = ""
    tenant: str = ""
    agent: str = ""
    tool_version: str = ""
    revision: int = 1
    arguments: Object = field(default_factory=dict, hash=False)
    digest: str = ""
    approved_arguments: Object | None = field(default=None, hash=False)
    edits: tuple[Edit, ...] = ()
    verdict: Verdict | None = None
    hold_id: str = ""
    deadline_at: datetime | None = None
    decision: Decision | None = None
    grant: Grant | None = None
    output: Any = field(default=None, hash=False)
    error: str = ""
    impact_reports: int = 0
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @property
    def pending(self) -> bool:
        """True if it is not decided yet."""
        return self.status in PENDING

    @property
    def stopped(self) -> bool:
        """True if it will never run."""
        return self.status in ("denied", "expired", "cancelled", "revoked")

    @property
    def feedback(self) -> str:
        """Why it was stopped, for the agent; can be empty."""
        decided = self.decision.feedback if self.decision is not None else ""
        said = self.raw.get("feedback")
        return decided or (said if isinstance(said, str) else "") or self.error or self._policy_reason()

    def _policy_reason(self) -> str:
        # If a person rejected it, or it expired, the policy's reason is not the answer.
        if self.decision is not None or self.verdict is None or self.verdict.effect != "deny":
            return ""
        return self.verdict.reason

    @property
    def idempotency_key(self) -> str:
        """The key for external services, so that they recognise a repeat: the releasing decision's id."""
        if self.grant is not None and self.grant.decision_id:
            return self.grant.decision_id
        if self.decision is not None and self.decision.decision_id:
            return self.decision.decision_id
        # A call's id is unique only within its execution.
        return f"{self.tenant}/{self.raw.get('project', '')}/{self.execution_id}/{self.call_id}"


@dataclass(frozen=True)
class Execution:
    """One run of an agent; `result` is that of a completed one, `reason` why another one ended."""

    execution_id: str
    state: str = ""
    agent: str = ""
    request: Any = field(default=None, hash=False)
    started_at: datetime | None = None
    version: int | None = None
    result: Any = field(default=None, hash=False)
    reason: str | None = None
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Hold:
    """A call or question that waits, or waited, for a person; `request` is what its agent was asked for."""

    hold_id: str
    status: str = ""
    execution_id: str = ""
    request: str = ""
    call_id: str = ""
    request_id: str = ""
    kind: str = ""
    agent: str = ""
    tool: str = ""
    arguments: Object | None = field(default=None, hash=False)
    digest: str = ""
    question: str = ""
    options: tuple[Any, ...] = field(default=(), hash=False)
    input_schema: Object | None = field(default=None, hash=False)
    risk: Risk | None = None
    trust: Any = field(default=None, hash=False)
    verdict: Verdict | None = None
    quorum: int = 1
    votes: tuple[Any, ...] = field(default=(), hash=False)
    deadline_at: datetime | None = None
    on_timeout: Any = field(default=None, hash=False)
    view_digest: str = ""
    must_read: bool = False
    badges: tuple[str, ...] = ()
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Difference:
    """The change of one value by an edit, before and after as displayed; None if there is no value."""

    path: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class HoldView:
    """The view of a hold: `text` is printed unchanged, `view_digest` is its SHA-256; `diff` is given after an edit.

    `must_read`: an approval is accepted only with the `view_digest`.
    """

    hold_id: str
    text: str
    view_digest: str = ""
    version: int = 1
    badges: tuple[str, ...] = ()
    redactions: tuple[Any, ...] = field(default=(), hash=False)
    must_read: bool = False
    diff: tuple[Difference, ...] | None = None
    seen: tuple[Any, ...] = field(default=(), hash=False)
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class LikeHold:
    """One of a group of similar holds."""

    hold_id: str
    digest: str = ""
    view_digest: str = ""


@dataclass(frozen=True)
class HoldGroup:
    """Similar open holds: same agent, tool, rules, risk, new or tainted values (`history`) and shape of arguments."""

    count: int
    agent: str = ""
    tool: str = ""
    kind: str = ""
    cause: str = ""
    rules: tuple[str, ...] = ()
    risk_level: str = ""
    shape: str = ""
    must_read: bool = False
    history: Any = field(default=None, hash=False)
    oldest_at: datetime | None = None
    newest_at: datetime | None = None
    holds: tuple[LikeHold, ...] = ()
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class NextHold:
    """The hold that an edit opened, and who may decide it; `counted` is the number of votes that it already has."""

    hold_id: str
    digest: str = ""
    roles: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    exclude_requester: bool = False
    quorum: int = 1
    requirements: tuple[Any, ...] = field(default=(), hash=False)
    counted: int = 0


@dataclass(frozen=True)
class AskedRule:
    """The standing rule that an approval requests; with `four_eyes` another person must activate it."""

    rule_id: str
    four_eyes: bool = True


@dataclass(frozen=True)
class Recorded:
    """The answer to a decision: `resolved`, or `recorded` while the quorum is not yet met.

    `edited_digest` is the digest of the arguments after an edit; `next_hold` is given if an edited call is not
    released yet and waits for other people; `rule` if the decision creates a standing rule.
    """

    status: str
    decision_id: str = ""
    edited_digest: str = ""
    next_hold: NextHold | None = None
    rule: AskedRule | None = None
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class HumanRequest:
    """A question that an agent asked; `response` is the answer once there is one, `input_schema` its JSON Schema.

    A question can be rejected (`decision`): then it has no answer, and `feedback` says why.
    """

    request_id: str
    hold_id: str = ""
    execution_id: str = ""
    status: str = ""
    response: Any = field(default=None, hash=False)
    decision: str = ""
    by: str = ""
    feedback: str = ""
    kind: str = ""
    question: str = ""
    options: tuple[Any, ...] = field(default=(), hash=False)
    fields: tuple[Any, ...] = field(default=(), hash=False)
    decision_type: str = ""
    asks: Object | None = field(default=None, hash=False)
    input_schema: Object | None = field(default=None, hash=False)
    deadline_at: datetime | None = None
    timed_out: bool = False
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @property
    def pending(self) -> bool:
        """True if it is not answered yet, and still can be."""
        return self.status in ("open", "pending", "")


@dataclass(frozen=True)
class Published:
    """A definition's version; `pending` names the partitions that have not adopted it yet.

    `unchanged`: the newest version was already the same, so none was added.
    """

    version: Any = field(default=None, hash=False)
    cursor: str = ""
    name: str = ""
    unchanged: bool = False
    warnings: tuple[Any, ...] = field(default=(), hash=False)
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class StandingRule:
    """An approval that is remembered for other runs. `uses` is its limit (None: none), `used` how many were given."""

    rule_id: str
    status: str
    agent: str = ""
    tool: str = ""
    arguments: Object = field(default_factory=dict, hash=False)
    expires_at: datetime | None = None
    uses: int | None = None
    used: int | None = None
    made_by: str = ""
    reason: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class AuditRow:
    """Who did what, when, to which call, with which result."""

    event_id: str
    at: datetime | None = None
    subject: str = ""
    action: str = ""
    execution_id: str = ""
    call_id: str = ""
    hold_id: str = ""
    digest: str = ""
    before: Any = field(default=None, hash=False)
    after: Any = field(default=None, hash=False)
    feedback: str = ""
    result: Any = field(default=None, hash=False)
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Component:
    """A part of the installation and whether it works."""

    name: str
    state: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Event:
    """One message of the live stream; resume with its `cursor`."""

    type: str
    cursor: str = ""
    body: Object = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list, iterated over like its `items`; `next_cursor` is None at its end, `cursor` for a stream."""

    items: tuple[T, ...]
    next_cursor: str | None = None
    cursor: str | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
