"""What can go wrong, and who acts on it.

`acts` on every error says whose turn it is: `retry` (the same request is safe to send again), `stop` (the
answer is no, or the code is wrong: asking again changes nothing), `operator` (a person must look).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from placet.models import Decision, ToolCall

Acts = Literal["retry", "stop", "operator"]
# So many ids stand in a message; a rollback may name a thousand.
NAMED_MAX = 5


class PlacetError(Exception):
    """Anything that Placet raises."""

    acts: ClassVar[Acts] = "stop"


class Unreachable(PlacetError):
    """Nobody answered in time. The request may have been taken: send it again under the same ids."""

    acts = "retry"


class NoAnswer(Unreachable):
    """A request for a change was sent, and no answer came in time: it may have been done.

    Attributes:
        path: what the request was about, below `/v1`.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class Refused(PlacetError):
    """Placet said no. `code` is the refusal's name.

    Attributes:
        code: the refusal's name, such as `already_decided`.
        status: its HTTP status.
        detail: one sentence for a person.
        fields: everything else that the answer carried, such as `winning_decision_id`.
    """

    def __init__(self, code: str, status: int, detail: str, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.status = status
        self.detail = detail
        self.fields: Mapping[str, Any] = dict(fields or {})


class Unauthenticated(Refused):
    """The token is missing, expired or not believed: get a new one."""

    acts = "operator"


class NotFound(Refused):
    """There is no such thing, or it is another tenant's."""


class NotAuthorised(Refused):
    """The token's subject may not do this."""


class AlreadyDecided(Refused):
    """Somebody else's decision stands; `fields["winning_decision_id"]` names it."""


class AlreadyConsumed(Refused):
    """Another attempt has used the grant: this one must not run the tool."""


class Expired(Refused):
    """The hold's or the grant's time was over."""


class ExecutionClosed(Refused):
    """The execution has ended; its id is never used again."""


class NotReleased(Refused):
    """The call is not released, or not any more: wait for its decision again."""


class QuotaExceeded(Refused):
    """Too much was asked; `fields["retry_after"]` says when to come back."""

    acts = "retry"


class Unavailable(Refused):
    """Nobody can serve this now: a gateway says so, or something in front of it."""

    acts = "retry"


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

    Where the rule says `on_reject: rollback`, `rollback` names what the agent should undo.
    """

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"{call.tool} was {call.status}: {call.feedback or _silent(call)}{_to_undo(call)}")
        self.call = call

    @property
    def decision(self) -> Decision | None:
        """The person's decision, None when the policy or the clock said no."""
        return self.call.decision

    @property
    def feedback(self) -> str:
        """What the agent should know about the reason; may be empty."""
        return self.call.feedback

    @property
    def rollback(self) -> tuple[str, ...]:
        """The ids of the calls to undo, newest first, where the rule says so; see `roll_back` of the execution."""
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


def _silent(call: ToolCall) -> str:
    """Who said no, where nobody said why."""
    if call.decision is not None and call.decision.decision == "reject":
        return "a person rejected it and gave no reason"
    return "no reason was given"


class StillHeld(PlacetError):
    """The wait is over and nobody has decided yet; the call stays held. Ask again with the same ids."""

    acts = "retry"

    def __init__(self, call: ToolCall, waited_s: float) -> None:
        super().__init__(f"{call.tool} is still {call.status} after {waited_s:g} s")
        self.call = call
        self.waited_s = waited_s


class OutcomeUnknown(PlacetError):
    """Another attempt took the grant and its result is not known: a person must look, nothing runs again."""

    acts = "operator"

    def __init__(self, call: ToolCall) -> None:
        super().__init__(
            f"{call.tool} was taken by another attempt and its outcome is not known;"
            f" look at it before it is tried again: placet show {call.execution_id}/{call.call_id}"
        )
        self.call = call


class ToolFailed(PlacetError):
    """An earlier attempt ran this call and it failed; `error` is what it reported."""

    def __init__(self, call: ToolCall, error: str) -> None:
        super().__init__(f"{call.tool} failed in an earlier attempt: {error}")
        self.call = call
        self.error = error


class OutputNotRecorded(PlacetError):
    """An earlier attempt succeeded, but its output was no JSON, so that it can't be handed out again."""

    def __init__(self, call: ToolCall, shown: str) -> None:
        super().__init__(
            f"{call.tool} succeeded in an earlier attempt, but its output was not recorded:"
            " return JSON values, or give gated(encode=...)"
        )
        self.call = call
        self.shown = shown


class ResultNotReported(PlacetError):
    """The tool ran, but its result did not reach the log; the call will become `outcome_unknown`.

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
    """What was to be recorded as the run's result is not JSON: nothing was recorded."""


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
# Said by a server or a proxy that took nothing: request timeout, too early, too many requests.
_PASSING = frozenset({408, 425, 429})
_TAKEN = ("code", "status", "detail", "title", "type")


def is_passing(status: int) -> bool:
    """Whether an answer of this status says nothing about the request: the same one may well be taken later."""
    return status >= 500 or status in _PASSING


def refusal(status: int, body: Any, retry_after_s: float | None = None) -> Refused:
    """The typed error of an RFC 9457 problem. One that passes is `Unavailable`, unless its code says more.

    Args:
        status: HTTP status of the answer.
        body: the problem object; anything else is shown as it came.
        retry_after_s: what the answer says besides; `fields["retry_after"]` where the body does not say it.
    """
    problem = body if isinstance(body, Mapping) else {"detail": str(body)[:500] if body else ""}
    code = str(problem.get("code") or _BY_STATUS.get(status, f"http_{status}"))
    detail = str(problem.get("detail") or problem.get("title") or "")
    fields = {key: value for key, value in problem.items() if key not in _TAKEN}
    if retry_after_s is not None:
        fields.setdefault("retry_after", retry_after_s)
    other = Unavailable if is_passing(status) else Refused
    return _BY_CODE.get(code, other)(code, status, detail, fields)
