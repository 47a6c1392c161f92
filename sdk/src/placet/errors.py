"""The errors of the client, and who has to act on each.

`acts` of every error says who acts next: `retry` (the same request is safe to send again), `stop` (the
answer is no, or the code is wrong: a retry changes nothing), `operator` (a person must look).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from placet.models import Decision, HumanRequest, ToolCall

Acts = Literal["retry", "stop", "operator"]
# At most this many ids are in a message; a rollback can name a thousand.
NAMED_MAX = 5
# Of the answer of a server that is not a gateway.
SHOWN_CHARS = 120


class PlacetError(Exception):
    """The base class of all errors of Placet. Each can be pickled and copied, also for another process."""

    acts: ClassVar[Acts] = "stop"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which is not what most of these classes take.
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[PlacetError], args: tuple[Any, ...]) -> PlacetError:
    """An error before its attributes are set; its `__init__`, which makes its message, is not called again."""
    return kind.__new__(kind, *args)


class Unreachable(PlacetError):
    """No answer came in time. The request may have been accepted: send it again under the same ids."""

    acts = "retry"


class NoAnswer(Unreachable):
    """A change was sent, and no answer came in time: it may have been made.

    Attributes:
        path: the request's path, below `/v1`.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class Refused(PlacetError):
    """Placet refused the request. `code` is the refusal's name.

    Attributes:
        code: the refusal's name, such as `already_decided`.
        status: its HTTP status.
        detail: one sentence for a person.
        fields: all other fields of the answer, such as `winning_decision_id`.
    """

    def __init__(self, code: str, status: int, detail: str, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.status = status
        self.detail = detail
        self.fields: Mapping[str, Any] = dict(fields or {})


class Unauthenticated(Refused):
    """The token is missing, expired or invalid: get a new one."""

    acts = "operator"


class NotFound(Refused):
    """The resource does not exist, or belongs to another tenant."""


class NotAuthorised(Refused):
    """The token's subject has no right to do this."""


class AlreadyDecided(Refused):
    """Another person's decision is in force; `fields["winning_decision_id"]` names it."""


class AlreadyConsumed(Refused):
    """Another attempt has consumed the grant: this one must not run the tool."""


class Expired(Refused):
    """The hold or the grant has expired."""


class ExecutionClosed(Refused):
    """The execution has ended; its id is never used again."""


class NotReleased(Refused):
    """The call is not released, or no longer: wait for its decision again."""


class HITLPending(NotReleased):
    """Nobody has answered a question yet: return, and run the same code again once it is answered.

    A run that is left by it stays open.

    Attributes:
        request: the question; its `execution_id` names the run to enter again.
    """

    acts = "retry"

    def __init__(self, request: HumanRequest) -> None:
        super().__init__("not_released", 0, f"the question {request.request_id} waits for an answer")
        self.request = request

    def __str__(self) -> str:
        # Its code is about calls, which is what a `NotReleased` commonly is about.
        return self.detail


class QuotaExceeded(Refused):
    """A quota is used up; `fields["retry_after"]` says when to retry."""

    acts = "retry"


class Unavailable(Refused):
    """The request cannot be served now, according to a gateway or a proxy in front of it.

    Attributes:
        path: the request's path, below `/v1`, if it was a change: it may have been made. Otherwise None.
    """

    acts = "retry"
    path: str | None = None


# After these the same request can be made again: nobody has decided anything.
PASSING_ERRORS = (Unreachable, Unavailable, QuotaExceeded)


class DigestMismatch(Refused):
    """What was approved is not what would run, so it does not run.

    Raised by the gateway's answer, and by the local check of a grant (`status` 0).
    """

    acts = "operator"


class NoExecution(PlacetError):
    """A gated function was called outside an execution."""


class Denied(PlacetError):
    """The call will not run: denied, expired, cancelled or revoked.

    Attributes:
        call: the whole call; `call.status` says which of the four it is.

    If the rule says `on_reject: rollback`, `rollback` names the calls that the agent should undo.
    """

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"{call.tool} {_ended(call)}{_to_undo(call)}")
        self.call = call

    @property
    def decision(self) -> Decision | None:
        """The person's decision, None if the policy or a deadline denied the call."""
        return self.call.decision

    @property
    def feedback(self) -> str:
        """The reason for the agent; can be empty."""
        return self.call.feedback

    @property
    def rollback(self) -> tuple[str, ...]:
        """The ids of the calls to undo, newest first, if the rule requires it; see `roll_back` of the execution."""
        return _rollback(self.call)


def _rollback(call: ToolCall) -> tuple[str, ...]:
    named = call.raw.get("rollback")
    return tuple(map(str, named)) if isinstance(named, list) else ()


def _to_undo(call: ToolCall) -> str:
    named = _rollback(call)
    if not named:
        return ""
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    return f"; to undo, newest first (rollback): {', '.join(named[:NAMED_MAX])}{more}"


def _ended(call: ToolCall) -> str:
    """How a call that will not run ended, and why."""
    if call.status != "expired":
        return f"was {call.status}: {call.feedback or _silent(call)}"
    if call.feedback:
        return f"expired: {call.feedback}"
    is_undecided = call.decision is None and bool(call.hold_id)
    return "expired without a decision" if is_undecided else "expired: its release was not used in time"


def _silent(call: ToolCall) -> str:
    """Who denied the call, if no reason was given."""
    if call.decision is not None and call.decision.decision == "reject":
        return "a person rejected it and gave no reason"
    return "no reason was given"


class StillHeld(PlacetError):
    """The wait is over, and the call can neither run nor was it denied. Call again with the same ids."""

    acts = "retry"

    def __init__(self, call: ToolCall, waited_s: float, why: str = "") -> None:
        super().__init__(f"{call.tool} is still {call.status} after {waited_s:g} s{why and f': {why}'}")
        self.call = call
        self.waited_s = waited_s


class Unanswered(PlacetError):
    """A question has no answer: it was rejected, its time is over, or its run has ended.

    Attributes:
        request: the question; `feedback` says why it was rejected.
    """

    def __init__(self, request: HumanRequest) -> None:
        super().__init__(f"the question has no answer: {why_unanswered(request)}")
        self.request = request


def why_unanswered(request: HumanRequest) -> str:
    """Why a closed question has no answer."""
    if request.decision:
        return f"{request.by} rejected it: {request.feedback or 'no reason was given'}"
    return "its run has ended" if request.status == "cancelled" else "nobody answered in time"


WhyRefused = Literal["unreadable", "other_log", "other_project", "other_filter", "gone"]


class CheckpointRefused(PlacetError):
    """The position at which a consumer was to start cannot be used: it never starts somewhere else instead.

    Start with another checkpoint: that of this installation, or a new one, with `start` saying where it begins.

    Attributes:
        why: `unreadable` (it is no position), `other_log` (of another installation or form, or its log was begun
            anew), `other_project` or `other_filter` (its consumer named another project, or delivered other events:
            what this one wants may have been passed over), or `gone` (the log no longer has what follows it).
    """

    acts = "operator"

    def __init__(self, why: WhyRefused, detail: str) -> None:
        super().__init__(f"{detail}; start with another checkpoint")
        self.why = why


class CheckpointNotSaved(PlacetError):
    """The checkpoint's file cannot be written: it stays as it was. Raised before the first event, or in the loop."""

    acts = "operator"


class OutcomeUnknown(PlacetError):
    """The grant is consumed and the result is unknown: a person must check, nothing runs again.

    Another attempt consumed it, or the lease of this one was over before the function began.
    """

    acts = "operator"

    def __init__(self, call: ToolCall, why: str = "was taken by another attempt") -> None:
        super().__init__(
            f"{call.tool} {why} and its outcome is not known;"
            f" check it before it is tried again: placet show {call.execution_id}/{call.call_id}"
        )
        self.call = call


class ToolFailed(PlacetError):
    """An earlier attempt ran this call and failed; `error` is its report."""

    def __init__(self, call: ToolCall, error: str) -> None:
        super().__init__(f"{call.tool} failed in an earlier attempt: {error}")
        self.call = call
        self.error = error


class OutputNotRecorded(PlacetError):
    """An earlier attempt succeeded, but its output was not JSON, so it cannot be returned again."""

    def __init__(self, call: ToolCall, shown: str) -> None:
        super().__init__(
            f"{call.tool} succeeded in an earlier attempt, but its output was not recorded:"
            " return JSON values, or give gated(encode=...)"
        )
        self.call = call
        self.shown = shown


class ResultNotReported(PlacetError):
    """The tool ran, but its result did not reach the log; the call becomes `outcome_unknown`.

    Attributes:
        call: the call that ran.
        output: what the tool returned, None if it raised.
        error: what the tool raised, as text; empty if it returned.
    """

    acts = "operator"

    def __init__(self, call: ToolCall, output: Any, error: str) -> None:
        super().__init__(f"{call.tool} ran ({error or 'it succeeded'}), but its result could not be reported")
        self.call = call
        self.output = output
        self.error = error


class ResultNotJson(PlacetError, TypeError):
    """The run's result is not JSON: nothing was recorded."""


class ApprovedArgumentsRejected(PlacetError):
    """A reviewer's edit does not fit the function's parameters; the grant was not used."""

    acts = "operator"


_BY_CODE: dict[str, type[Refused]] = {
    "unauthenticated": Unauthenticated,
    "not_found": NotFound,
    "not_authorised": NotAuthorised,
    "own_request": NotAuthorised,
    "forbidden_role": NotAuthorised,
    "already_decided": AlreadyDecided,
    "already_consumed": AlreadyConsumed,
    "expired": Expired,
    "execution_closed": ExecutionClosed,
    "not_released": NotReleased,
    "digest_mismatch": DigestMismatch,
    "quota": QuotaExceeded,
    "unavailable": Unavailable,
}
_BY_STATUS: dict[int, str] = {401: "unauthenticated", 404: "not_found", 429: "quota", 503: "unavailable"}
# A server or proxy has accepted nothing: request timeout, too early, too many requests.
_PASSING = frozenset({408, 425, 429})
_TAKEN = ("code", "status", "detail", "title", "type")


def is_passing(status: int) -> bool:
    """Returns True if this status is temporary: the same request can be accepted later."""
    return status >= 500 or status in _PASSING


def is_an_answer(error: BaseException) -> bool:
    """Returns True if a request was answered by this error: it was refused, denied, or nobody has decided yet."""
    if isinstance(error, Refused):
        return error.status < 500
    return isinstance(error, Denied | StillHeld | Unanswered)


def _of_another(status: int, body: Any) -> str:
    """The answer of a server that is not a gateway, such as a page."""
    said = " ".join(str(body).split()) if body else ""
    shown = said if len(said) <= SHOWN_CHARS else f"{said[:SHOWN_CHARS]}…"
    begins = f", which begins: {shown}" if shown else ""
    whose = "a proxy or another server, not a gateway"
    return f"status {status} from {whose}: check the address (PLACET_URL){begins}"


def refusal(status: int, body: Any, retry_after_s: float | None = None) -> Refused:
    """The typed error of an RFC 9457 problem. A temporary one is `Unavailable`, unless its code is more specific.

    Args:
        status: HTTP status of the answer.
        body: the problem object. Anything else is from a proxy or from another server: its beginning is shown.
        retry_after_s: the answer's `Retry-After`; `fields["retry_after"]` if the body has none.
    """
    problem = body if isinstance(body, Mapping) and "code" in body else {"detail": _of_another(status, body)}
    code = str(problem.get("code") or _BY_STATUS.get(status, f"http_{status}"))
    detail = str(problem.get("detail") or problem.get("title") or "")
    fields = {key: value for key, value in problem.items() if key not in _TAKEN}
    if retry_after_s is not None:
        fields.setdefault("retry_after", retry_after_s)
    other = Unavailable if is_passing(status) else Refused
    return _BY_CODE.get(code, other)(code, status, detail, fields)
