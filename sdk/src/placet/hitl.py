"""Questions to people as functions that return the answer: `HITLHandler`, and `BlockingHITLHandler` without await.

The names and arguments are those of the HITL systems whose agents move to Placet. Each question is a request: within
a run it is the same one when a restarted process asks it again, see `AsyncExecution.ask`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import (
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    runtime_checkable,
)

from placet.bodies import is_coroutine_function
from placet.errors import HITLPending, Unanswered
from placet.execution import Variable, question_for
from placet.human_requests import AsyncRequests
from placet.lists import check_variables, checked_list
from placet.models import HumanRequest

P = ParamSpec("P")
T = TypeVar("T")
# How long a question waits that does not say how long (docs/hitl/request-types.md).
DEFAULT_TIMEOUT_S = 300.0
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

    def __init__(
        self,
        asker: _Asker | _Client,
        *,
        wait_s: float | None = None,
        remind_after_seconds: float | None = None,
    ) -> None:
        """Choose how to ask.

        Args:
            asker: a run (`AsyncExecution`), or a client (`AsyncPlacet`).
            wait_s: how long to wait for each answer before `HITLPending` is raised; None waits as long as the
                question does. With 0, an agent that cannot wait, such as a request of a web server, returns at once.
            remind_after_seconds: when people are reminded of a question that nobody has answered, of those that wait
                for longer; None for never. The functions that ask take it too, for one question.

        Raises:
            TypeError: the asker blocks, or is neither a run nor a client.
        """
        if not _is_awaited(asker):
            raise TypeError(
                "HITLHandler takes an AsyncPlacet or a run of it: use BlockingHITLHandler for "
                f"{type(asker).__name__}"
            )
        if wait_s is not None and (isinstance(wait_s, bool) or not isinstance(wait_s, int | float)):
            raise TypeError(f"wait_s is a number of seconds or None, not {wait_s!r}")
        self._asker: _Asker = asker if isinstance(asker, _Asker) else _Alone(asker)
        self._wait_s = wait_s
        self._remind_after_seconds = remind_after_seconds

    async def request_clarification(
        self,
        question: str,
        *,
        options: Sequence[Any] = (),
        default: Any = None,
        timeout_seconds: float | None = None,
        remind_after_seconds: float | None = None,
    ) -> Any:
        """Ask for a text; the options are suggestions.

        Raises:
            Unanswered: it was rejected, or nobody answered in time and there is no default.
        """
        offered = checked_list(options, "options")
        more = {"kind": "clarification", "options": offered, "default": default}
        return answer_of(await self._ask(question, more, timeout_seconds, remind_after_seconds))

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
        remind_after_seconds: float | None = None,
    ) -> Any:
        """Ask for one of the options, and return it: the id of an option that is a dict.

        With `multiple` it is a list of options, and `default_option` is one as well; with `allow_custom` the person
        can also answer with a text that is no option.

        Raises:
            Unanswered: it was rejected, or nobody answered in time and there is no default.
        """
        more = _decision(options, decision_type, default_option, allow_custom, multiple)
        return answer_of(await self._ask(question, more, timeout_seconds, remind_after_seconds))

    async def request_env_var(
        self,
        fields: Sequence[Variable],
        *,
        question: str = "",
        timeout_seconds: float | None = None,
        remind_after_seconds: float | None = None,
    ) -> Mapping[str, str]:
        """Ask for environment variables, each a name or a dict about it; only this process receives them.

        Raises:
            NotReleased: they were not given (in time).
        """
        variables = checked_list(fields, "fields")
        check_variables(variables)
        return await self._asker.ask_env(
            *variables,
            question=question,
            timeout_s=self._wait_s,
            timeout_seconds=timeout_seconds,
            remind_after_seconds=self._reminding(remind_after_seconds, timeout_seconds),
        )

    async def request_permission(
        self,
        *,
        tool: str = "",
        action: str = "",
        risk: Risk | None = None,
        question: str = "",
        remember: bool = False,
        timeout_seconds: float | None = None,
        remind_after_seconds: float | None = None,
    ) -> Permission:
        """Ask whether the agent may do something. A timeout grants nothing."""
        more = _permission(tool, action, risk, remember)
        return permission_of(
            await self._ask(question or _may(tool, action), more, timeout_seconds, remind_after_seconds)
        )

    def _reminding(self, given: float | None, timeout_seconds: float | None) -> float | None:
        """When people are reminded of a question: as it says, else as all do that wait for longer."""
        usual = self._remind_after_seconds
        if given is not None or usual is None:
            return given
        ends = DEFAULT_TIMEOUT_S if timeout_seconds is None else timeout_seconds
        return usual if usual < ends else None

    async def _ask(
        self,
        question: str,
        more: Mapping[str, Any],
        timeout_seconds: float | None,
        remind_after_seconds: float | None,
    ) -> HumanRequest:
        remind_after = self._reminding(remind_after_seconds, timeout_seconds)
        told = {"timeout_seconds": timeout_seconds, "remind_after_seconds": remind_after}
        found = await self._asker.ask(question, timeout_s=self._wait_s, **_given({**more, **told}))
        if found.pending:
            raise HITLPending(found)
        return found


def _at_once(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """A blocking version of a method of `HITLHandler`, with its signature, types and documentation."""

    @functools.wraps(method)
    def call(self: BlockingHITLHandler, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _result_of(method(self._handler, *args, **kwargs))

    return call


def _result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that awaits nothing that is not done: its asker blocks instead."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking handler has to wait, but has no event loop")


class BlockingHITLHandler:
    """`HITLHandler` for programs without an event loop: given a `Placet`, or a run of it."""

    request_clarification = _at_once(HITLHandler.request_clarification)
    request_decision = _at_once(HITLHandler.request_decision)
    request_env_var = _at_once(HITLHandler.request_env_var)
    request_permission = _at_once(HITLHandler.request_permission)

    def __init__(
        self,
        asker: _BlockingAsker | _BlockingClient,
        *,
        wait_s: float | None = None,
        remind_after_seconds: float | None = None,
    ) -> None:
        """See `HITLHandler`; the asker is a `RunningExecution` or a `Placet`.

        Raises:
            TypeError: the asker has to be awaited, or is neither a run nor a client.
        """
        if _is_awaited(asker):
            raise TypeError(
                f"BlockingHITLHandler takes a Placet or a run of it: use HITLHandler for {type(asker).__name__}"
            )
        self._handler = HITLHandler(_AtOnce(asker), wait_s=wait_s, remind_after_seconds=remind_after_seconds)


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


def _decision(
    options: Sequence[Any], decision_type: str | None, default: Any, allow_custom: bool, multiple: bool
) -> dict[str, Any]:
    return {
        "kind": "decision",
        "options": checked_list(options, "options"),
        "decision_type": decision_type,
        "default": default,
        "allow_custom": allow_custom,
        "multiple": multiple,
    }


def _permission(tool: str, action: str, risk: Risk | None, remember: bool) -> dict[str, Any]:
    return {"kind": "permission", "tool": tool, "action": action, "risk": risk, "remember": remember}


def _may(tool: str, action: str) -> str:
    return f"May the agent do this: {action or tool or 'go on'}?"


def _is_awaited(asker: object) -> bool:
    """Returns True if what a run or a client asks is awaited, False if it blocks.

    Raises:
        TypeError: it is neither a run nor a client.
    """
    where = asker if hasattr(asker, "ask") else getattr(asker, "requests", None)
    ask = getattr(where, "ask", None)
    if ask is None:
        raise TypeError(f"a handler asks by a run or a client of Placet, not by {type(asker).__name__}")
    return is_coroutine_function(ask)


class _Client(Protocol):
    """What `HITLHandler` needs to ask outside a run; an `AsyncPlacet` has it."""

    @property
    def requests(self) -> AsyncRequests: ...


@runtime_checkable
class _Asker(Protocol):
    """What `HITLHandler` needs; an `AsyncExecution` has it."""

    async def ask(self, question: str, *, timeout_s: float | None = None, **more: Any) -> HumanRequest: ...

    async def ask_env(
        self, *variables: Variable, question: str = "", timeout_s: float | None = None, **more: Any
    ) -> Mapping[str, str]: ...


class _Alone:
    """Asks outside a run: each question opens an execution of its own."""

    def __init__(self, client: _Client) -> None:
        self._requests = client.requests

    async def ask(self, question: str, *, timeout_s: float | None = None, **more: Any) -> HumanRequest:
        asked = await self._requests.ask(question, **more)
        return await self._requests.wait(asked, timeout_s=timeout_s)

    async def ask_env(
        self, *variables: Variable, question: str = "", timeout_s: float | None = None, **more: Any
    ) -> Mapping[str, str]:
        said = question or question_for(variables)
        found = await self.ask(said, timeout_s=timeout_s, **more, **_env_var(variables))
        return await self._requests.take_secrets(found)


class _BlockingClient(Protocol):
    """What `BlockingHITLHandler` needs to ask outside a run; a `Placet` has it."""

    @property
    def requests(self) -> Any: ...


@runtime_checkable
class _BlockingAsker(Protocol):
    """What `_AtOnce` needs; a `RunningExecution` has it."""

    def ask(self, question: str, *, timeout_s: float | None = None, **more: Any) -> HumanRequest: ...

    def ask_env(
        self, *variables: Variable, question: str = "", timeout_s: float | None = None, **more: Any
    ) -> Mapping[str, str]: ...


class _AtOnce:
    """Asks by blocking: what its methods return is there when they are awaited."""

    def __init__(self, asker: _BlockingAsker | _BlockingClient) -> None:
        self._asker = asker

    async def ask(self, question: str, *, timeout_s: float | None = None, **more: Any) -> HumanRequest:
        if isinstance(self._asker, _BlockingAsker):
            return self._asker.ask(question, timeout_s=timeout_s, **more)
        requests = self._asker.requests
        found: HumanRequest = requests.wait(requests.ask(question, **more), timeout_s=timeout_s)
        return found

    async def ask_env(
        self, *variables: Variable, question: str = "", timeout_s: float | None = None, **more: Any
    ) -> Mapping[str, str]:
        if isinstance(self._asker, _BlockingAsker):
            return self._asker.ask_env(*variables, question=question, timeout_s=timeout_s, **more)
        said = question or question_for(variables)
        found = await self.ask(said, timeout_s=timeout_s, **more, **_env_var(variables))
        taken: Mapping[str, str] = self._asker.requests.take_secrets(found)
        return taken


def _env_var(variables: Sequence[Variable]) -> dict[str, Any]:
    return {"kind": "env_var", "fields": list(variables)}


def _given(more: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in more.items() if value is not None}
