"""Questions to people as functions that return the answer: `HITLHandler`, and `BlockingHITLHandler` without await.

The names and arguments are those of the HITL systems whose agents move to Placet. Each question is a request: within
a run it is the same one when a restarted process asks it again, see `AsyncExecution.ask`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from placet.errors import Unanswered
from placet.execution import AsyncExecution, Variable, question_for

if TYPE_CHECKING:
    from placet.client import AsyncPlacet
    from placet.models import HumanRequest
    from placet.sync import Placet, RunningExecution

Risk = Literal["low", "medium", "high"]


class Permission(NamedTuple):
    """A person's answer to a permission; it is true if it was granted.

    Attributes:
        granted: False also if nobody answered in time.
        remember: the person said that the answer is for further times, too.
    """

    granted: bool
    remember: bool = False

    def __bool__(self) -> bool:
        return self.granted


class HITLHandler:
    """Asks people on behalf of an agent: in a run of it, or, given a client, in an execution of its own each time."""

    def __init__(self, asker: AsyncPlacet | AsyncExecution) -> None:
        self._asker = asker

    async def request_clarification(
        self,
        question: str,
        *,
        options: Sequence[Any] = (),
        default: Any = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Ask for a text; the options are suggestions.

        Raises:
            Unanswered: it was rejected, or nobody answered in time and there is no default.
        """
        more = {"kind": "clarification", "options": list(options), "default": default}
        return answer_of(await self._ask(question, more, timeout_seconds))

    async def request_decision(
        self,
        question: str,
        options: Sequence[Any],
        *,
        decision_type: str | None = None,
        default_option: Any = None,
        allow_custom: bool = False,
        multiple: bool = False,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Ask for one of the options, and return it: the id of an option that is a dict.

        With `multiple` it is a list of options, and `default_option` is one as well; with `allow_custom` the person
        can also answer with a text that is no option.

        Raises:
            Unanswered: it was rejected, or nobody answered in time and there is no default.
        """
        more = _decision(options, decision_type, default_option, allow_custom, multiple)
        return answer_of(await self._ask(question, more, timeout_seconds))

    async def request_env_var(
        self, fields: Sequence[Variable], *, question: str = "", timeout_seconds: float | None = None
    ) -> Mapping[str, str]:
        """Ask for environment variables, each a name or a dict about it; only this process receives them.

        Raises:
            NotReleased: they were not given (in time).
        """
        if isinstance(self._asker, AsyncExecution):
            return await self._asker.ask_env(*fields, question=question, timeout_seconds=timeout_seconds)
        found = await self._ask(question or question_for(fields), _variables(fields), timeout_seconds)
        return await self._asker.requests.take_secrets(found)

    async def request_permission(
        self,
        *,
        tool: str = "",
        action: str = "",
        risk: Risk | None = None,
        question: str = "",
        remember: bool = False,
        timeout_seconds: float | None = None,
    ) -> Permission:
        """Ask whether the agent may do something. A timeout grants nothing."""
        more = _permission(tool, action, risk, remember)
        return permission_of(await self._ask(question or _may(tool, action), more, timeout_seconds))

    async def _ask(
        self, question: str, more: Mapping[str, Any], timeout_seconds: float | None
    ) -> HumanRequest:
        given = _given(more, timeout_seconds)
        if isinstance(self._asker, AsyncExecution):
            return await self._asker.ask(question, **given)
        requests = self._asker.requests
        return await requests.wait(await requests.ask(question, **given))


class BlockingHITLHandler:
    """`HITLHandler` for programs without an event loop: given a `Placet`, or a run of it."""

    def __init__(self, asker: Placet | RunningExecution) -> None:
        self._asker = asker

    def request_clarification(
        self,
        question: str,
        *,
        options: Sequence[Any] = (),
        default: Any = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """See `HITLHandler.request_clarification`."""
        more = {"kind": "clarification", "options": list(options), "default": default}
        return answer_of(self._ask(question, more, timeout_seconds))

    def request_decision(
        self,
        question: str,
        options: Sequence[Any],
        *,
        decision_type: str | None = None,
        default_option: Any = None,
        allow_custom: bool = False,
        multiple: bool = False,
        timeout_seconds: float | None = None,
    ) -> Any:
        """See `HITLHandler.request_decision`."""
        more = _decision(options, decision_type, default_option, allow_custom, multiple)
        return answer_of(self._ask(question, more, timeout_seconds))

    def request_env_var(
        self, fields: Sequence[Variable], *, question: str = "", timeout_seconds: float | None = None
    ) -> Mapping[str, str]:
        """See `HITLHandler.request_env_var`."""
        requests = getattr(self._asker, "requests", None)
        if requests is None:
            found: Mapping[str, str] = self._asker.ask_env(  # type: ignore[union-attr]
                *fields, question=question, timeout_seconds=timeout_seconds
            )
            return found
        asked = self._ask(question or question_for(fields), _variables(fields), timeout_seconds)
        taken: Mapping[str, str] = requests.take_secrets(asked)
        return taken

    def request_permission(
        self,
        *,
        tool: str = "",
        action: str = "",
        risk: Risk | None = None,
        question: str = "",
        remember: bool = False,
        timeout_seconds: float | None = None,
    ) -> Permission:
        """See `HITLHandler.request_permission`."""
        more = _permission(tool, action, risk, remember)
        return permission_of(self._ask(question or _may(tool, action), more, timeout_seconds))

    def _ask(self, question: str, more: Mapping[str, Any], timeout_seconds: float | None) -> HumanRequest:
        given = _given(more, timeout_seconds)
        requests = getattr(self._asker, "requests", None)
        if requests is None:
            return self._asker.ask(question, **given)  # type: ignore[union-attr]
        found: HumanRequest = requests.wait(requests.ask(question, **given))
        return found


def answer_of(request: HumanRequest) -> Any:
    """The answer to a question that is closed.

    Raises:
        Unanswered: there is none.
    """
    if request.response is None:
        raise Unanswered(request)
    return request.response


def permission_of(request: HumanRequest) -> Permission:
    """The answer to a permission, which only a person can grant."""
    said = request.response
    if isinstance(said, Mapping):
        return Permission(said.get("granted") is True, said.get("remember") is True)
    return Permission(said is True)


def _given(more: Mapping[str, Any], timeout_seconds: float | None) -> dict[str, Any]:
    given = {**more, "timeout_seconds": timeout_seconds}
    return {name: value for name, value in given.items() if value is not None}


def _decision(
    options: Sequence[Any], decision_type: str | None, default: Any, allow_custom: bool, multiple: bool
) -> dict[str, Any]:
    return {
        "kind": "decision",
        "options": list(options),
        "decision_type": decision_type,
        "default": default,
        "allow_custom": allow_custom,
        "multiple": multiple,
    }


def _permission(tool: str, action: str, risk: Risk | None, remember: bool) -> dict[str, Any]:
    return {"kind": "permission", "tool": tool, "action": action, "risk": risk, "remember": remember}


def _variables(fields: Sequence[Variable]) -> dict[str, Any]:
    return {"kind": "env_var", "fields": list(fields)}


def _may(tool: str, action: str) -> str:
    return f"May the agent do this: {action or tool or 'go on'}?"
