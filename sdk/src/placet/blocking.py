"""The parts of the synchronous client that are the asynchronous ones, made blocking."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, TypeVar

from placet.chat import AsyncConversations
from placet.chat_models import ChatEvent
from placet.client_finalizer import ClientFinalizer
from placet.human_requests import AsyncRequests
from placet.loopthread import LoopThread
from placet.probes import AsyncProbes
from placet.resources import (
    AsyncExecutions,
    AsyncHolds,
    AsyncPolicies,
    AsyncPrincipals,
    AsyncTools,
)
from placet.standing_rules import AsyncStandingRules
from placet.trust import AsyncTrust
from placet.vault import AsyncVault

P = ParamSpec("P")
T = TypeVar("T")
CANCEL_AGAIN_S = 1.0


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """A blocking version of a method, with the signature, types and documentation of the asynchronous one."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        _check_fits(method, self, args, kwargs)
        result: T = self._thread.run(lambda: method(self._inner, *args, **kwargs))
        return result

    return call


def _check_fits(method: Callable[..., Any], own: Any, args: Any, kwargs: Any) -> None:
    """Refuse arguments that the method does not take, in the name of the object that was called.

    Raises:
        TypeError: they do not fit; else the asynchronous method would say it in its own name.
    """
    try:
        _signature_of(method).bind(own, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{type(own).__name__}.{method.__name__}(): {error}") from None


@functools.cache
def _signature_of(method: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(method)


class Blocking:
    """An asynchronous object and the thread to run it on."""

    def __init__(self, inner: Any, thread: LoopThread, finalizer: ClientFinalizer) -> None:
        self._inner = inner
        self._thread = thread
        self._finalizer = finalizer


class Executions(Blocking):
    """Runs of agents."""

    start = blocking(AsyncExecutions.start)
    get = blocking(AsyncExecutions.get)
    list = blocking(AsyncExecutions.list)
    events = blocking(AsyncExecutions.events)
    calls = blocking(AsyncExecutions.calls)
    pause = blocking(AsyncExecutions.pause)
    resume = blocking(AsyncExecutions.resume)
    complete = blocking(AsyncExecutions.complete)
    fail = blocking(AsyncExecutions.fail)
    cancel = blocking(AsyncExecutions.cancel)


class Holds(Blocking):
    """Calls and requests that wait for a person."""

    list = blocking(AsyncHolds.list)
    get = blocking(AsyncHolds.get)
    view = blocking(AsyncHolds.view)
    groups = blocking(AsyncHolds.groups)
    decide = blocking(AsyncHolds.decide)
    decide_many = blocking(AsyncHolds.decide_many)
    claim = blocking(AsyncHolds.claim)
    release = blocking(AsyncHolds.release)
    escalate = blocking(AsyncHolds.escalate)
    delegate = blocking(AsyncHolds.delegate)
    extend = blocking(AsyncHolds.extend)


class Requests(Blocking):
    """Questions to people."""

    ask = blocking(AsyncRequests.ask)
    get = blocking(AsyncRequests.get)
    wait = blocking(AsyncRequests.wait)
    take_secrets = blocking(AsyncRequests.take_secrets)


class Policies(Blocking):
    """Policy documents."""

    publish = blocking(AsyncPolicies.publish)
    check = blocking(AsyncPolicies.check)
    list = blocking(AsyncPolicies.list)
    get = blocking(AsyncPolicies.get)
    retire = blocking(AsyncPolicies.retire)
    versions = blocking(AsyncPolicies.versions)


class Tools(Blocking):
    """Published tools."""

    put = blocking(AsyncTools.put)
    register = blocking(AsyncTools.register)
    list = blocking(AsyncTools.list)


class Principals(Blocking):
    """People and services of the tenant."""

    publish = blocking(AsyncPrincipals.publish)
    list = blocking(AsyncPrincipals.list)


class Trust(Blocking):
    """Trust in the agents of the project."""

    classes = blocking(AsyncTrust.classes)
    assess = blocking(AsyncTrust.assess)


class Probes(Blocking):
    """Planted calls."""

    plant = blocking(AsyncProbes.plant)
    list = blocking(AsyncProbes.list)


class StandingRules(Blocking):
    """Remembered approvals."""

    list = blocking(AsyncStandingRules.list)
    get = blocking(AsyncStandingRules.get)
    activate = blocking(AsyncStandingRules.activate)
    suspend = blocking(AsyncStandingRules.suspend)
    revoke = blocking(AsyncStandingRules.revoke)


class Conversations(Blocking):
    """Conversations with agents."""

    _inner: AsyncConversations

    respond = blocking(AsyncConversations.respond)
    messages = blocking(AsyncConversations.messages)
    under_way = blocking(AsyncConversations.under_way)

    def chat(self, message: str, **more: Any) -> Generator[ChatEvent, None, None]:
        """Send an agent a message and follow its answer; see `AsyncConversations.chat`."""
        return followed(self._thread, self._finalizer, self._inner.chat(message, **more))

    def continue_chat(self, request_id: str, response: Any, **more: Any) -> Generator[ChatEvent, None, None]:
        """Answer a question and follow the turn that waited for it; see `AsyncConversations.continue_chat`."""
        events = self._inner.continue_chat(request_id, response, **more)
        return followed(self._thread, self._finalizer, events)

    def follow(self, conversation_id: str, **more: Any) -> Generator[ChatEvent, None, None]:
        """Follow a conversation without sending anything; see `AsyncConversations.follow`."""
        return followed(self._thread, self._finalizer, self._inner.follow(conversation_id, **more))


class Vault(Blocking):
    """Erases sensitive values."""

    erase_call = blocking(AsyncVault.erase_call)
    erase_request = blocking(AsyncVault.erase_request)
    keys = blocking(AsyncVault.keys)
    destroy_key = blocking(AsyncVault.destroy_key)


def followed(
    thread: LoopThread, finalizer: ClientFinalizer, events: AsyncGenerator[T, None]
) -> Generator[T, None, None]:
    """The items of an asynchronous generator, each awaited on the client's thread.

    The client is not forgotten before this generator is, and if it is closed before, it ends the stream first.
    """
    stream = _Stream(events)
    finalizer.streams.add(stream)
    try:
        while True:
            try:
                yield thread.run(stream.next)
            except StopAsyncIteration:
                return
    finally:
        finalizer.streams.discard(stream)
        thread.settle(stream.end)


class _Stream:
    """A stream of events on the client's thread, which can be ended while a step is running."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self._step: asyncio.Task[Any] | None = None
        # Its reader can leave it just as its client is closed: a generator can be closed by one task at a time.
        self._ending = asyncio.Lock()

    async def next(self) -> Any:
        self._step = asyncio.current_task()
        return await self._events.__anext__()

    async def end(self) -> None:
        async with self._ending:
            # The thread that waited for the step may have been interrupted before it could cancel the step.
            while self._step is not None and not self._step.done():
                self._step.cancel()
                await asyncio.wait((self._step,), timeout=CANCEL_AGAIN_S)
            await self._events.aclose()
