"""The synchronous client: the asynchronous client on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Token, copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from placet.agents import (
    REGISTERED,
    AnyAgentFunction,
    BlockingAgentFunction,
    check_takes_turn,
)
from placet.blocking import (
    Blocking,
    Conversations,
    Executions,
    Holds,
    Policies,
    Principals,
    Probes,
    Requests,
    StandingRules,
    Tools,
    Trust,
    Vault,
    blocking,
    followed,
)
from placet.bodies import is_coroutine_function
from placet.client import AsyncPlacet
from placet.client_finalizer import ClientFinalizer
from placet.errors import Denied
from placet.execution import AsyncExecution, Variable, ends
from placet.gate import Proposal
from placet.gated import F, Run, current_run, decorate
from placet.gated_options import GatedOptions, Options
from placet.hitl import BlockingHITLHandler
from placet.lease import LeaseOver
from placet.loopthread import LoopThread, Make, Step
from placet.models import Event, HumanRequest, Object
from placet.recording import recordable_failure
from placet.rollback import CallKey, Compensate, Undone, calls_to_undo, undo_blocking
from placet.stopping import Stop
from placet.transport.auto import Mode
from placet.transport.port import Patience
from placet.tries import Try
from placet.turn import AgentFunction, AsyncTurn
from placet.turn_reports import GIVE_BACK_S

if TYPE_CHECKING:
    from typing_extensions import Unpack


T = TypeVar("T")


class RunningExecution(Blocking):
    """One run of an agent: `with placet.execution(id=…) as run`; see `AsyncExecution`."""

    _inner: AsyncExecution

    complete = blocking(AsyncExecution.complete)
    fail = blocking(AsyncExecution.fail)
    cancel = blocking(AsyncExecution.cancel)

    def __init__(
        self,
        inner: AsyncExecution,
        thread: LoopThread,
        finalizer: ClientFinalizer,
        stop: Stop | None = None,
    ) -> None:
        super().__init__(inner, thread, finalizer)
        self._stop = stop or Stop()
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
            return self._thread.run(lambda: self._stop.before(lambda: make(one)))
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
        if error is not None and self._thread.is_of_parent():
            # A fork leaves the block by sys.exit or an error. The run is its parent's, which goes on with it.
            return
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

    @property
    def wait_s(self) -> float | None:
        """See `Run`."""
        return self._inner.wait_s

    def block(self, make: Make[T]) -> T:
        """See `Run`."""
        return self._thread.run(make)

    def wait(self, make: Make[T]) -> Awaitable[T]:
        """See `Run`."""
        return asyncio.wrap_future(self._thread.future(make))

    async def until_stopped(self, make: Make[T]) -> T:
        """See `Run`."""
        return await self._stop.before(make)

    def background(self, make: Make[None]) -> Step[None]:
        """See `Run`."""
        return self._thread.background(make)

    def begin(self) -> Try:
        """See `Run`."""
        return self._inner.begin()

    def give_back(self, one: Try) -> None:
        """See `Run`: it is done before this thread's next request."""
        self._thread.soon(one.leave)

    def waits_for(self, call_id: str) -> None:
        """See `Run`."""
        self._inner.waits_for(call_id)

    def proposal(self, one: Try, options: Options, tool: str, arguments: Mapping[str, Any]) -> Proposal:
        """See `Run`."""
        return self._inner.proposal(one, options, tool, arguments)


class Placet(Blocking):
    """A client of one gateway, for any number of threads; arguments as in `AsyncPlacet`."""

    _inner: AsyncPlacet

    propose = blocking(AsyncPlacet.propose)
    call = blocking(AsyncPlacet.call)
    wait = blocking(AsyncPlacet.wait)
    consume = blocking(AsyncPlacet.consume)
    heartbeat = blocking(AsyncPlacet.heartbeat)
    result = blocking(AsyncPlacet.result)
    revoke = blocking(AsyncPlacet.revoke)
    report_impact = blocking(AsyncPlacet.report_impact)
    audit = blocking(AsyncPlacet.audit)
    impact = blocking(AsyncPlacet.impact)
    components = blocking(AsyncPlacet.components)
    fetch = blocking(AsyncPlacet.fetch)

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
        self.trust = Trust(inner.trust, thread, finalizer)
        self.probes = Probes(inner.probes, thread, finalizer)
        self.vault = Vault(inner.vault, thread, finalizer)
        self.conversations = Conversations(inner.conversations, thread, finalizer)

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
        return followed(self._thread, self._finalizer, self._inner.events(channels, cursor=cursor))

    def serve(
        self,
        agents: Mapping[str, AnyAgentFunction] | None = None,
        *,
        concurrency: int = 16,
        wait_s: float | None = None,
    ) -> None:
        """Answer the messages to agents, until interrupted (Ctrl-C): each is given back then.

        A function that is not an `async def` runs on a thread, and takes a `placet.sync.Turn`. A thread cannot be
        cancelled: at the end, it gets `TurnStopped` where it waits for a person, or begins to; whatever else it
        does is waited for. Arguments and errors as in `AsyncPlacet.serve`.
        """
        functions = REGISTERED if agents is None else agents
        for name, function in functions.items():
            check_takes_turn(name, function)
        with ThreadPoolExecutor(concurrency, thread_name_prefix="placet-agent") as threads:
            made = {name: self._agent(function, threads, wait_s) for name, function in functions.items()}
            self._thread.run_and_end(
                lambda: self._inner.serve(made, concurrency=concurrency, wait_s=wait_s), GIVE_BACK_S
            )

    def _agent(
        self, function: AnyAgentFunction, threads: ThreadPoolExecutor, wait_s: float | None
    ) -> AgentFunction:
        if is_coroutine_function(function):
            return cast(AgentFunction, function)
        blocks = cast(BlockingAgentFunction, function)

        async def answer(turn: AsyncTurn) -> str | None:
            stop = Stop()
            blocking = Turn(turn, self._thread, self._finalizer, wait_s, stop)
            context = copy_context()
            context.run(current_run.set, blocking.run)

            def begin() -> Any:
                # The threads of turns that were lost may be busy still: it can have waited for one.
                if not turn.lease.permits_begin():
                    raise LeaseOver("the turn's lease was over before a thread began its function")
                return blocks(blocking)

            loop = asyncio.get_running_loop()
            try:
                said: str | None = await loop.run_in_executor(threads, context.run, begin)
            except asyncio.CancelledError:
                stop.set()
                raise
            return said

        return answer


class Turn(Blocking):
    """One message to an agent, for a function that blocks; see `AsyncTurn`."""

    _inner: AsyncTurn

    say = blocking(AsyncTurn.say)
    history = blocking(AsyncTurn.history)

    def __init__(
        self,
        inner: AsyncTurn,
        thread: LoopThread,
        finalizer: ClientFinalizer,
        wait_s: float | None,
        stop: Stop,
    ) -> None:
        super().__init__(inner, thread, finalizer)
        self.conversation_id = inner.conversation_id
        self.turn_id = inner.turn_id
        self.message = inner.message
        self.sent_by = inner.sent_by
        self.run = RunningExecution(inner.run, thread, finalizer, stop)
        self.hitl = BlockingHITLHandler(self.run, wait_s=wait_s)


async def _made(url: str | None, **settings: Any) -> AsyncPlacet:
    return AsyncPlacet(url, **settings)
