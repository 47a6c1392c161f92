"""The state of an execution: its calls and holds, as the fold of its events leaves them.

All of it is frozen. Calls and holds live in persistent maps, so that one event costs the same whether the
execution is short or has thousands of events behind it.
"""

from typing import Literal

from immutables import Map
from msgspec import Struct

from schemas.authority import Delegation
from schemas.commands import RequestKind, Scope
from schemas.events.holds import HoldCause, OnReject, OnTimeout
from schemas.requirement import Requirement

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
HoldStatus = Literal["open", "resolved", "expired", "cancelled"]
Lifecycle = Literal["running", "resumed", "paused", "completed", "failed", "cancelled"]

TERMINAL_CALLS = frozenset({"denied", "cancelled", "expired", "revoked", "succeeded", "failed"})
CLOSED = frozenset({"completed", "failed", "cancelled"})


class Reservation(Struct, frozen=True):
    """What a revision of a call asked of a standing rule with a limit of uses, and the answer."""

    reservation_id: str
    rule_id: str
    revision: int
    deadline_at_ms: int
    settled: bool = False
    granted: bool = False


class Call(Struct, frozen=True, kw_only=True):
    """One tool call at its newest revision.

    `proposal_digest` names the agent's own proposal, to tell a repeat from a reuse of the id.
    `requesters` are those whose words the current revision is: the proposer, or the last editor with it.
    `proposed_arguments` are the agent's own where a person edited them, else empty. `succeeded_as` counts the calls
    of the run that succeeded, up to this one. `grant_id` names its newest release. `rule_id` is what released the
    call in a person's place. `consumed_by` is whose attempt runs it; `lease_until_ms` is until when it is believed
    to, 0 where only its run deadline counts. `spent` are the attempts that had it before the one that runs it, or
    before its newest release: none of them may have it again. `handed_on` are those of its holds that somebody
    handed on. Once the call has ended, its texts are empty;
    `result_digest` names what was reported.
    """

    call_id: str
    revision: int
    agent: str
    tool: str
    tool_version: str
    arguments: str
    digest: str
    context: str
    claims: str
    reason: str
    requesters: tuple[str, ...]
    proposal_digest: str
    proposed_arguments: str = ""
    status: CallStatus = "proposed"
    judged: bool = False
    definitions_through: int = -1
    hold_id: str = ""
    released_by: str = ""
    decision_id: str = ""
    grant_id: str = ""
    grant_expires_at_ms: int = 0
    attempt_id: str = ""
    run_deadline_at_ms: int = 0
    lease_ms: int = 0
    lease_until_ms: int = 0
    succeeded_as: int = 0
    rule_id: str = ""
    reservation: Reservation | None = None
    consumed_by: str = ""
    result_digest: str = ""
    spent: tuple[str, ...] = ()
    handed_on: tuple[str, ...] = ()


class Vote(Struct, frozen=True):
    """One person's word on a hold: the account that it came by, and the roles that it had then.

    `person` is the principal whose account it was, empty where none was published; `delegations` counts those that
    the hold had by then. `scope` and `remember` (JSON) are what it asks to be remembered for.
    """

    by: str
    roles: tuple[str, ...]
    person: str = ""
    delegations: int = 0
    scope: Scope = "once"
    remember: str | None = None


class Hold(Struct, frozen=True, kw_only=True):
    """One pause for a person. `decision_id` is the decision that ended it.

    `must_read` says that only who names its view may approve or edit.
    """

    hold_id: str
    call_id: str
    request_id: str
    revision: int
    digest: str
    kind: RequestKind
    cause: HoldCause
    options: str
    input_schema: str
    requester: str
    roles: tuple[str, ...]
    quorum: int
    exclude_requester: bool
    opened_at_ms: int
    deadline_at_ms: int | None
    on_timeout: OnTimeout
    default_value: str | None
    escalate_at_ms: int | None
    escalate_roles: tuple[str, ...]
    on_reject: OnReject
    reviewers: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    view_digest: str = ""
    risk_level: str = ""
    remember: str | None = None
    requirements: tuple[Requirement, ...] = ()
    must_read: bool = False
    status: HoldStatus = "open"
    claimed_by: str = ""
    claimed_until_ms: int | None = None
    delegations: tuple[Delegation, ...] = ()
    votes: tuple[Vote, ...] = ()
    decision_id: str = ""


class Handover(Struct, frozen=True, kw_only=True):
    """What became of the sealed values of a call or request: who was given them, until when again, or erased."""

    attempt_id: str = ""
    until_ms: int = 0
    erased: bool = False
    by: str = ""


class Execution(Struct, frozen=True, kw_only=True):
    """One run of an agent.

    `due` holds the next moment (ms) of everything that waits, by hold id or `deadlines.due_id_of_call`; `next_due`
    is the earliest. `paused_by_agent` is the agent whose own token paused the run, empty where a person did.
    `open_count` counts the calls that have not ended and the requests that nobody has answered; `parked` names the
    calls that were proposed in a pause and wait for their verdict, `reserving` those that wait for a use of a
    standing rule. `memory` is what the run remembers of its decisions, as JSON (`schemas.standing_rule`).
    """

    tenant: str
    project: str
    execution_id: str
    agent: str
    user: str
    workspace: str
    request: str
    context: str
    start_digest: str
    started_by: str = ""
    lifecycle: Lifecycle = "running"
    calls: Map[str, Call] = Map()
    holds: Map[str, Hold] = Map()
    due: Map[str, int] = Map()
    next_due: tuple[int, str] | None = None
    paused_by_agent: str = ""
    open_count: int = 0
    succeeded_count: int = 0
    parked: tuple[str, ...] = ()
    handovers: Map[str, Handover] = Map()
    memory: tuple[str, ...] = ()
    reserving: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether the run has ended; calls that were consumed may still report."""
        return self.lifecycle in CLOSED
