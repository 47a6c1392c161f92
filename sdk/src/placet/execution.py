"""An execution as a block of code: started on entering, finished on leaving, its functions gated."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from placet.canonical import canonical, sha256_hex
from placet.channel import Channel
from placet.errors import Denied, ExecutionClosed, PlacetError
from placet.gate import Proposal
from placet.gated import F, GatedOptions, Options, Run, current_run, decorate
from placet.ids import call_id, check_id, new_id
from placet.loopthread import Make
from placet.models import Execution, HumanRequest, Object
from placet.occurrences import Occurrences
from placet.resources import AsyncExecutions, AsyncRequests
from placet.rollback import Compensate, Undone, calls_to_undo, undo

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Calls:
    """The call ids of one execution."""

    def __init__(self, execution_id: str, agent: str | None) -> None:
        self.execution_id = execution_id
        self._agent = agent
        self._occurrences = Occurrences()
        self._numbers: dict[str, tuple[tuple[str, str], int]] = {}

    def proposal(self, options: Options, tool: str, arguments: Mapping[str, Any]) -> Proposal:
        """The proposal of the next call of this tool with these arguments."""
        return Proposal(
            execution_id=self.execution_id,
            call_id=self._call_id(options, tool, arguments),
            tool=tool,
            arguments=arguments,
            agent=self._agent,
            annotations=options.annotations,
            context=options.context,
            reason=options.reason,
        )

    def give_back(self, proposal: Proposal) -> None:
        """The next equal call is this one, tried again."""
        numbered = self._numbers.pop(proposal.call_id, None)
        if numbered is not None:
            self._occurrences.give_back(*numbered)

    def numbered(self, name: str, digest: str) -> str:
        """The id of the next such thing: uuid5 of execution, name, digest and occurrence."""
        kind = name, digest
        number = self._occurrences.next(kind)
        made = call_id(self.execution_id, name, digest, number)
        self._numbers[made] = kind, number
        return made

    def _call_id(self, options: Options, tool: str, arguments: Mapping[str, Any]) -> str:
        chosen = options.call_id
        if chosen is not None:
            return check_id(chosen if isinstance(chosen, str) else chosen(arguments), "call id")
        told = {name: value for name, value in arguments.items() if name not in options.sensitive}
        return self.numbered(tool, sha256_hex(canonical(told)))


class AsyncExecution:
    """One run of an agent: `async with placet.execution(id=…) as run`.

    Leaving the block completes the execution; leaving it by an exception fails it. It stays open, to be
    resumed under the same id, when the process is being stopped (KeyboardInterrupt, cancellation) or when
    the error says that a retry or a person comes next. `result` is recorded as the execution's result.
    """

    def __init__(self, channel: Channel, agent: str | None, execution_id: str | None, start: Object) -> None:
        self.channel = channel
        self.id = check_id(execution_id, "execution id") if execution_id else new_id()
        self.result: Any = None
        self._executions = AsyncExecutions(channel, agent)
        self._start = start
        self._calls = Calls(self.id, agent)
        self._token: Token[Run | None] | None = None
        self._finished = False

    async def __aenter__(self) -> AsyncExecution:
        await self.start()
        self._token = current_run.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            current_run.reset(self._token)
        await self.leave(error)

    async def start(self) -> Execution:
        """Open the execution, or go on with it."""
        return await self._executions.start(self.id, **self._start)

    async def leave(self, error: BaseException | None) -> None:
        """Finish it as the block ended."""
        if self._finished or not _ends(error):
            return
        if error is None:
            await self.complete(self.result)
            return
        try:
            await self.fail(f"{type(error).__name__}: {error}"[:4000])
        except ExecutionClosed:
            # A rejection under `on_reject: halt` has ended it, or somebody else has.
            _log.debug("execution %s had ended already", self.id)
        except PlacetError as unsaid:
            # The block's own error is what its caller must see.
            _log.warning("execution %s stays open: its failure could not be told (%s)", self.id, unsaid)

    async def complete(self, result: Any = None) -> Execution:
        """End it with its result, which must be JSON."""
        self._finished = True
        return await self._executions.complete(self.id, result)

    async def fail(self, reason: str) -> Execution:
        """End it with an error."""
        self._finished = True
        return await self._executions.fail(self.id, reason)

    async def cancel(self, reason: str = "") -> Execution:
        """End it without a result."""
        self._finished = True
        return await self._executions.cancel(self.id, reason)

    async def ask(self, question: str, /, *, timeout_s: float | None = None, **more: Any) -> HumanRequest:
        """Ask a person within this execution and wait for the answer; see `requests.ask`.

        The same question asked by a restarted process is the same request.
        """
        requests = AsyncRequests(self.channel)
        if "request_id" not in more:
            said = json.dumps([question, more], sort_keys=True, default=repr)
            more["request_id"] = self._calls.numbered("request", sha256_hex(said.encode()))
        asked = await requests.ask(question, execution_id=self.id, **more)
        return await requests.wait(asked, timeout_s=timeout_s)

    async def roll_back(self, denied: Denied, compensations: Mapping[str, Compensate]) -> list[Undone]:
        """Undo what a rejection under `on_reject: rollback` names, newest first.

        Args:
            denied: what the rejected call raised.
            compensations: by tool, what undoes one call; best a gated function, or a coroutine of one.
        """
        return await undo(await calls_to_undo(self.channel, denied), compensations)

    async def ask_env(
        self, *names: str, question: str = "", timeout_s: float | None = None
    ) -> Mapping[str, str]:
        """Ask a person for environment variables, and take them: to this process alone, and in no log.

        Raises:
            NotReleased: nobody has given them (in time).
            AlreadyConsumed: another process has taken them.
        """
        said = question or f"Give the variables {', '.join(names)}."
        asked = await self.ask(said, timeout_s=timeout_s, kind="env_var", fields=list(names))
        return await AsyncRequests(self.channel).take_secrets(asked)

    @overload
    def gated(self, function: F, /) -> F: ...
    @overload
    def gated(self, /, **options: Unpack[GatedOptions]) -> Callable[[F], F]: ...
    def gated(self, function: F | None = None, /, **options: Unpack[GatedOptions]) -> F | Callable[[F], F]:
        """Gate a function by this execution; see `placet.gated.Options`.

        A synchronous function becomes awaitable and runs in a thread.
        """
        return decorate(lambda: self, function, options)

    @property
    def blocks(self) -> bool:
        """See `Run`."""
        return False

    def block(self, make: Make[T]) -> T:
        """See `Run`: an asynchronous execution never blocks."""
        raise RuntimeError("an asynchronous execution is awaited, never blocked on")

    def wait(self, make: Make[T]) -> Awaitable[T]:
        """See `Run`."""
        return make()

    def background(self, make: Make[None]) -> asyncio.Task[None]:
        """See `Run`."""
        return asyncio.get_running_loop().create_task(make())

    def proposal(self, options: Options, tool: str, arguments: Mapping[str, Any]) -> Proposal:
        """See `Run`."""
        return self._calls.proposal(options, tool, arguments)

    def give_back(self, proposal: Proposal) -> None:
        """See `Run`."""
        self._calls.give_back(proposal)


def _ends(error: BaseException | None) -> bool:
    if error is None:
        return True
    # Several at once (ExceptionGroup, of Python 3.11): as long as one of them leaves something open, so does the run.
    within = getattr(error, "exceptions", None)
    if isinstance(within, tuple):
        return all(_ends(each) for each in within if isinstance(each, BaseException))
    return isinstance(error, Exception) and not (isinstance(error, PlacetError) and error.acts != "stop")
