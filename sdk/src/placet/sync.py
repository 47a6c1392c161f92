"""The synchronous client: the asynchronous client on a thread of its own."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from placet.client import AsyncPlacet
from placet.client_finalizer import ClientFinalizer
from placet.errors import Denied
from placet.execution import AsyncExecution, Variable, ends
from placet.gate import Proposal
from placet.gated import F, Run, current_run, decorate
from placet.gated_options import GatedOptions, Options
from placet.human_requests import AsyncRequests
from placet.loopthread import LoopThread, Make, Step
from placet.models import Event, HumanRequest, Object
from placet.recording import recordable_failure
from placet.resources import (
    AsyncExecutions,
    AsyncHolds,
    AsyncPolicies,
    AsyncPrincipals,
    AsyncTools,
)
from placet.rollback import CallKey, Compensate, Undone, calls_to_undo, undo_blocking
from placet.standing_rules import AsyncStandingRules
from placet.transport.auto import Mode
from placet.transport.port import Patience
from placet.tries import Try
from placet.vault import AsyncVault

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
CANCEL_AGAIN_S = 1.0


def _blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """A blocking version of a method, with the signature, types and documentation of the asynchronous one."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._thread.run(lambda: method(self._inner, *args, **kwargs))
        return result

    return call


class _Blocking:
    """An asynchronous object and the thread to run it on."""

    def __init__(self, inner: Any, thread: LoopThread, finalizer: ClientFinalizer) -> None:
        self._inner = inner
        self._thread = thread
        self._finalizer = finalizer


class Executions(_Blocking):
    """Runs of agents."""

    start = _blocking(AsyncExecutions.start)
    get = _blocking(AsyncExecutions.get)
    list = _blocking(AsyncExecutions.list)
    events = _blocking(AsyncExecutions.events)
    calls = _blocking(AsyncExecutions.calls)
    pause = _blocking(AsyncExecutions.pause)
    resume = _blocking(AsyncExecutions.resume)
    complete = _blocking(AsyncExecutions.complete)
    fail = _blocking(AsyncExecutions.fail)
    cancel = _blocking(AsyncExecutions.cancel)


class Holds(_Blocking):
    """Calls and requests that wait for a person."""

    list = _blocking(AsyncHolds.list)
    get = _blocking(AsyncHolds.get)
    view = _blocking(AsyncHolds.view)
    groups = _blocking(AsyncHolds.groups)
    decide = _blocking(AsyncHolds.decide)
    decide_many = _blocking(AsyncHolds.decide_many)
    claim = _blocking(AsyncHolds.claim)
    release = _blocking(AsyncHolds.release)
    escalate = _blocking(AsyncHolds.escalate)
    delegate = _blocking(AsyncHolds.delegate)
    extend = _blocking(AsyncHolds.extend)


class Requests(_Blocking):
    """Questions to people."""

    ask = _blocking(AsyncRequests.ask)
    get = _blocking(AsyncRequests.get)
    wait = _blocking(AsyncRequests.wait)
    take_secrets = _blocking(AsyncRequests.take_secrets)


class Policies(_Blocking):
    """Policy documents."""

    publish = _blocking(AsyncPolicies.publish)
    check = _blocking(AsyncPolicies.check)
    list = _blocking(AsyncPolicies.list)
    get = _blocking(AsyncPolicies.get)
    retire = _blocking(AsyncPolicies.retire)
    versions = _blocking(AsyncPolicies.versions)


class Tools(_Blocking):
    """Published tools."""

    put = _blocking(AsyncTools.put)
    register = _blocking(AsyncTools.register)
    list = _blocking(AsyncTools.list)


class Principals(_Blocking):
    """People and services of the tenant."""

    publish = _blocking(AsyncPrincipals.publish)
    list = _blocking(AsyncPrincipals.list)


class StandingRules(_Blocking):
    """Remembered approvals."""

    list = _blocking(AsyncStandingRules.list)
    get = _blocking(AsyncStandingRules.get)
    activate = _blocking(AsyncStandingRules.activate)
    suspend = _blocking(AsyncStandingRules.suspend)
    revoke = _blocking(AsyncStandingRules.revoke)


class Vault(_Blocking):
    """Erases sensitive values."""

    erase_call = _blocking(AsyncVault.erase_call)
    erase_request = _blocking(AsyncVault.erase_request)
    keys = _blocking(AsyncVault.keys)
    destroy_key = _blocking(AsyncVault.destroy_key)


class RunningExecution(_Blocking):
    """One run of an agent: `with placet.execution(id=…) as run`; see `AsyncExecution`."""

    _inner: AsyncExecution

    complete = _blocking(AsyncExecution.complete)
    fail = _blocking(AsyncExecution.fail)
    cancel = _blocking(AsyncExecution.cancel)

    def __init__(self, inner: AsyncExecution, thread: LoopThread, finalizer: ClientFinalizer) -> None:
        super().__init__(inner, thread, finalizer)
        self.channel = inner.channel
        self.id = inner.id
        self._token: Token[Run | None] | None = None
        self._undone: dict[CallKey, Undone] = {}

    def ask(self, question: str, *, timeout_s: float | None = None, **more: Any) -> HumanRequest:
        """See `AsyncExecution.ask`."""
        return self._tried(lambda one: self._inner.ask_in(one, question, timeout_s=timeout_s, **more))

    def ask_env(
        self, *variables: Variable, question: str = "", timeout_s: float | None = None, **more: Any
    ) -> Mapping[str, str]:
        """See `AsyncExecution.ask_env`."""
        return self._tried(
            lambda one: self._inner.ask_env_in(
                one, *variables, question=question, timeout_s=timeout_s, **more
            )
        )

    def _tried(self, make: Callable[[Try], Coroutine[Any, Any, T]]) -> T:
        one = self.begin()
        try:
            return self._thread.run(lambda: make(one))
        except BaseException:
            self.give_back(one)
            raise

    def roll_back(self, denied: Denied, compensations: Mapping[str, Compensate]) -> list[Undone]:
        """Undo the calls that a rejection under `on_reject: rollback` names; see `AsyncExecution.roll_back`."""
        calls = self._thread.run(lambda: calls_to_undo(self.channel, denied))
        return undo_blocking(calls, compensations, self._undone)

    def __enter__(self) -> RunningExecution:
        self._thread.run(self._inner.start)
        self._token = current_run.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            current_run.reset(self._token)
        told = None
        if error is not None and ends(error):
            told = recordable_failure(error, self._thread.run(self.channel.is_exposed))
        self._thread.run(lambda: self._inner.leave(error, told))
        if told is not None:
            told.go_on()

    @property
    def result(self) -> Any:
        """The result that is recorded for the execution when the block ends; JSON."""
        return self._inner.result

    @result.setter
    def result(self, value: Any) -> None:
        self._inner.result = value

    @overload
    def gated(self, function: F, /) -> F: ...
    @overload
    def gated(self, /, **options: Unpack[GatedOptions]) -> Callable[[F], F]: ...
    def gated(self, function: F | None = None, /, **options: Unpack[GatedOptions]) -> F | Callable[[F], F]:
        """Gate a function, synchronous or not, by this execution; see `placet.gated.Options`."""
        return decorate(lambda: self, function, options)

    @property
    def blocks(self) -> bool:
        """See `Run`."""
        return True

    def block(self, make: Make[T]) -> T:
        """See `Run`."""
        return self._thread.run(make)

    def wait(self, make: Make[T]) -> Awaitable[T]:
        """See `Run`."""
        return asyncio.wrap_future(self._thread.future(make))

    def background(self, make: Make[None]) -> Step[None]:
        """See `Run`."""
        return self._thread.background(make)

    def begin(self) -> Try:
        """See `Run`."""
        return self._inner.begin()

    def give_back(self, one: Try) -> None:
        """See `Run`: it is done before this thread's next request."""
        self._thread.soon(one.leave)

    def proposal(self, one: Try, options: Options, tool: str, arguments: Mapping[str, Any]) -> Proposal:
        """See `Run`."""
        return self._inner.proposal(one, options, tool, arguments)


class Placet(_Blocking):
    """A client of one gateway, for any number of threads; arguments as in `AsyncPlacet`."""

    _inner: AsyncPlacet

    propose = _blocking(AsyncPlacet.propose)
    call = _blocking(AsyncPlacet.call)
    wait = _blocking(AsyncPlacet.wait)
    consume = _blocking(AsyncPlacet.consume)
    heartbeat = _blocking(AsyncPlacet.heartbeat)
    result = _blocking(AsyncPlacet.result)
    revoke = _blocking(AsyncPlacet.revoke)
    audit = _blocking(AsyncPlacet.audit)
    impact = _blocking(AsyncPlacet.impact)
    components = _blocking(AsyncPlacet.components)
    fetch = _blocking(AsyncPlacet.fetch)

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | Callable[[], str] | None = None,
        agent: str | None = None,
        transport: Mode = "auto",
        patience: Patience | None = None,
        project: str | None = None,
    ) -> None:
        thread = LoopThread()
        try:
            inner = thread.run(
                lambda: _made(
                    url, token=token, agent=agent, transport=transport, patience=patience, project=project
                )
            )
        except BaseException:
            thread.stop()
            raise
        finalizer = ClientFinalizer(inner, thread)
        super().__init__(inner, thread, finalizer)
        self.url = inner.url
        self.agent = agent
        self.executions = Executions(inner.executions, thread, finalizer)
        self.holds = Holds(inner.holds, thread, finalizer)
        self.requests = Requests(inner.requests, thread, finalizer)
        self.policies = Policies(inner.policies, thread, finalizer)
        self.tools = Tools(inner.tools, thread, finalizer)
        self.principals = Principals(inner.principals, thread, finalizer)
        self.standing_rules = StandingRules(inner.standing_rules, thread, finalizer)
        self.vault = Vault(inner.vault, thread, finalizer)

    def __enter__(self) -> Placet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and the thread, within seconds even if the gateway does not answer.

        Can be repeated.
        """
        self._finalizer.end()

    def execution(
        self,
        id: str | None = None,  # noqa: A002 - the interface's word
        *,
        user: str | None = None,
        workspace: str | None = None,
        request: Any = None,
        context: Object | None = None,
    ) -> RunningExecution:
        """A run of the agent as a `with` block; with an `id`, it can be resumed after a crash."""
        inner = self._inner.execution(id, user=user, workspace=workspace, request=request, context=context)
        return RunningExecution(inner, self._thread, self._finalizer)

    def events(
        self, channels: Sequence[str] = ("events",), *, cursor: str | None = None
    ) -> Generator[Event, None, None]:
        """Follow the live stream; see `AsyncPlacet.events`."""
        stream = _Stream(self._inner.events(channels, cursor=cursor))
        try:
            while True:
                yield self._thread.run(stream.next)
        finally:
            self._thread.settle(stream.end)


async def _made(url: str | None, **settings: Any) -> AsyncPlacet:
    return AsyncPlacet(url, **settings)


class _Stream:
    """A stream of events on the client's thread, which can be ended while a step is running."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self._step: asyncio.Task[Any] | None = None

    async def next(self) -> Event:
        self._step = asyncio.current_task()
        event: Event = await self._events.__anext__()
        return event

    async def end(self) -> None:
        # The thread that waited for the step may have been interrupted before it could cancel the step.
        while self._step is not None and not self._step.done():
            self._step.cancel()
            await asyncio.wait((self._step,), timeout=CANCEL_AGAIN_S)
        await self._events.aclose()
