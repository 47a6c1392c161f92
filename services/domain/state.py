"""The state of an execution: its calls and holds, folded from its events.

Everything is frozen. Calls and holds are in persistent maps, so that folding one event costs the same whether the
execution has few events or thousands.
"""

from typing import Literal, NamedTuple, get_args

from immutables import Map
from msgspec import Struct

from schemas.authority import Delegation
from schemas.commands import RequestKind, Scope
from schemas.events.conversations import TurnEnding
from schemas.events.holds import HoldCause, OnReject, OnTimeout
from schemas.probe import Probe
from schemas.requirement import Requirement
from services.domain.untrusted import NO_WORDS, WordsOfRun

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
TurnStatus = Literal["waiting", "claimed", "suspended"] | TurnEnding
Lifecycle = Literal["running", "resumed", "paused", "completed", "failed", "cancelled"]

TERMINAL_CALLS = frozenset({"denied", "cancelled", "expired", "revoked", "succeeded", "failed"})
ENDED_TURNS = frozenset(get_args(TurnEnding))
CLOSED = frozenset({"completed", "failed", "cancelled"})


class Reservation(Struct, frozen=True):
    """The use of a standing rule with a limit of uses that a revision of a call requested, and the answer."""

    reservation_id: str
    rule_id: str
    revision: int
    deadline_at_ms: int
    settled: bool = False
    granted: bool = False


class Call(Struct, frozen=True, kw_only=True):
    """One tool call at its newest revision.

    `proposal_digest` names the agent's own proposal, to tell a repeat from a reuse of the id. `requesters` are the
    authors of the current revision: the proposer, and the editors with it. `proposed_arguments` are the agent's own
    arguments if a person has edited them, else empty. `succeeded_as` is the call's number among the calls of the run
    that succeeded. `grant_id` names the newest release. `rule_id` is the remembered decision that released the call
    in place of a person. `consumed_by` is the subject whose attempt runs the call; `lease_until_ms` is the time until
    which the attempt is taken to be running, 0 if only the run deadline counts. `spent` are the attempts that had the
    call before the current one, or before the newest release: none of them can have it again. `handed_on` are the
    holds of the call that were delegated. The first `senders` of the conversation had sent a message when the agent
    proposed the call: it is their request too. `message` is the message that the agent was answering then, or empty.
    The texts of a call that has ended are empty; `result_digest` names the reported result. `trust_class` is what
    decisions on the newest revision count for; `by_trust` is true if trust released it, `is_sampled` if trust would
    have released it and people were asked all the same. `is_untrusted` is true if others decide what its tool
    returns. `impact_by` are those who have reported that it did harm, `values` the digests of its identifying values.
    `probe` says what an operator planted; such a call never runs.
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
    senders: int = 0
    message: str = ""
    trust_class: str = ""
    by_trust: bool = False
    is_untrusted: bool = False
    is_sampled: bool = False
    impact_by: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    probe: Probe | None = None


class Vote(Struct, frozen=True):
    """One person's vote on a hold: the account that cast it, and the roles that the account had then.

    `person` is the principal of the account, empty if none was published; `delegations` is the number of delegations
    that the hold had then. `scope` and `remember` (JSON) say what the vote asks to be remembered for. `said` is the
    digest of what was decided, by which a repeat is known, of the vote that resolved the hold.
    """

    by: str
    roles: tuple[str, ...]
    person: str = ""
    delegations: int = 0
    scope: Scope = "once"
    remember: str | None = None
    said: str = ""


class Hold(Struct, frozen=True, kw_only=True):
    """One pause for a person. `decision_id` is the decision that ended it.

    `must_read` says that an approval or edit must name the digest of the hold's view. `senders` is as in `Call`, for
    a request; 0 if the hold is a call's.
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
    remind_at_ms: int | None = None
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
    senders: int = 0


class Turn(Struct, frozen=True, kw_only=True):
    """The answer to one message of a conversation; of a turn that has ended only id, digest and status are kept.

    `text` is the message, which `sent_by` sent. `attempt_id` is the attempt that works on it, or the last one that
    did, and `claimed_by` its subject. A suspended turn waits for the hold `waits_for`. `lapses` counts the attempts
    in a row that let their lease end without a new reply. `replies` is the number of the agent's replies, and
    `reply_digest` names the last one.
    """

    turn_id: str
    message_digest: str
    status: TurnStatus = "waiting"
    text: str = ""
    sent_by: str = ""
    attempt_id: str = ""
    claimed_by: str = ""
    lease_until_ms: int = 0
    waits_for: str = ""
    lapses: int = 0
    replies: int = 0
    reply_digest: str = ""


class Handover(Struct, frozen=True, kw_only=True):
    """The delivery of a call's or request's sealed values: the attempt, until when it can repeat, or the erasure."""

    attempt_id: str = ""
    until_ms: int = 0
    erased: bool = False
    by: str = ""


class AskedQuestion(NamedTuple):
    """The part of a question that the event which opens its hold does not repeat; `asks` is that of `asks_of`."""

    decision_type: str = ""
    fields: str = "[]"
    asks: str | None = None


class Execution(Struct, frozen=True, kw_only=True):
    """One run of an agent.

    `due` maps everything with a deadline, by hold id or `deadlines.due_id_of_call`, to its next moment (ms);
    `next_due` is the earliest. `paused_by_agent` is the agent whose own token paused the run, empty if a person
    paused it. `open_count` counts the calls that have not ended and the requests without an answer; `parked` are the
    calls that were proposed during a pause and wait for their verdict, `reserving` those that wait for a use of a
    standing rule. `memory` are the decisions that the run remembers, as JSON (`schemas.standing_rule`). `open_turns`
    are the turns of a conversation that have not ended, in the order of their messages: the first one is worked on.
    `senders` are the subjects who have sent a message, and the users for whom tokens have said or asked something
    (`joining`), each once, in the order of their first ones. `asked_about` is
    the question that was asked, from the event that asks it to the one that opens its hold: one batch.
    `idle_ms` is the time after which a run that has nothing open is completed by itself; None: never. `words` are
    those of untrusted outputs, and of what people said. `opened_for` is JSON of what is planted in a run that an
    operator opened for it, and `planted_call` the call once it is planted; both are empty in any other run.
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
    turns: Map[str, Turn] = Map()
    open_turns: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    asked_about: AskedQuestion | None = None
    idle_ms: int | None = None
    words: WordsOfRun = NO_WORDS
    opened_for: str = ""
    planted_call: str = ""

    @property
    def closed(self) -> bool:
        """True if the run has ended; calls that were consumed can still report."""
        return self.lifecycle in CLOSED
