"""An execution as a block of code: started on entering, finished on leaving, its functions gated."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from placet.canonical import canonical, check_json, sha256_hex
from placet.channel import Channel
from placet.errors import (
    AlreadyConsumed,
    Denied,
    ExecutionClosed,
    Expired,
    NotFound,
    NotReleased,
    PlacetError,
    ResultNotJson,
)
from placet.gate import MOST_ERROR_CHARS, Proposal, read_call
from placet.gated import F, Run, current_run, decorate
from placet.gated_options import GatedOptions, Options
from placet.human_requests import AsyncRequests
from placet.ids import check_id, new_id
from placet.lists import check_variables
from placet.loopthread import Make
from placet.models import Execution, HumanRequest, Object
from placet.recording import Recordable, recordable_failure
from placet.resources import AsyncExecutions
from placet.rollback import CallKey, Compensate, Undone, calls_to_undo, undo
from placet.tries import Tries, Try

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
# A variable that a person is asked for: its name, or more about it.
Variable: TypeAlias = str | Mapping[str, Any]
_log = logging.getLogger(__name__)
_TIMES = frozenset({"timeout_seconds", "remind_after_seconds"})


def _call_id(one: Try, options: Options, tool: str, arguments: Mapping[str, Any]) -> str:
    if isinstance(options.call_id, str):
        return check_id(options.call_id, "call id")
    told = {name: value for name, value in arguments.items() if name not in options.sensitive}
    return one.number(tool, sha256_hex(canonical(told)))


class AsyncExecution:
    """One run of an agent: `async with placet.execution(id=…) as run`.

    Leaving the block completes the execution; leaving it by an exception fails it. It stays open, to be
    resumed under the same id, when the process is being stopped (KeyboardInterrupt, cancellation), when
    the error says that a retry or a person comes next, and when a question or call of the block still waits
    for a person and no `result` was set. `result` is recorded as the execution's result.
    """

    def __init__(
        self,
        channel: Channel,
        agent: str | None,
        execution_id: str | None,
        start: Object,
        numbering: str | None = None,
        wait_s: float | None = None,
    ) -> None:
        self.channel = channel
        self.wait_s = wait_s
        self.id = check_id(execution_id, "execution id") if execution_id else new_id()
        self._result: Any = None
        self._executions = AsyncExecutions(channel, agent)
        self._start = start
        self._agent = agent
        self._tries = Tries(numbering or self.id, channel.unused)
        self._token: Token[Run | None] | None = None
        self._finished = False
        self._undone: dict[CallKey, Undone] = {}
        # The questions and calls that people had not answered or decided when they were last looked at here.
        self._unanswered: set[str] = set()
        self._undecided: set[str] = set()

    @property
    def result(self) -> Any:
        """What is recorded as the execution's result when the block ends; JSON."""
        return self._result

    @result.setter
    def result(self, value: Any) -> None:
        _check_result(value, "run.result")
        self._result = value

    async def __aenter__(self) -> AsyncExecution:
        await self.start()
        self._token = current_run.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            current_run.reset(self._token)
        told = None
        if error is not None and ends(error):
            told = recordable_failure(error, await self.channel.is_exposed())
        await self.leave(error, told)
        if told is not None:
            told.go_on()

    async def start(self) -> Execution:
        """Open the execution, or continue it."""
        return await self._executions.start(self.id, **self._start)

    async def leave(self, error: BaseException | None, told: Recordable[str] | None) -> None:
        """Finish it as the block ended: with an error, which is recorded as `told`, or successfully."""
        if self._finished or not ends(error):
            return
        if told is not None:
            await self._tell_failed(told.value)
            return
        if self._result is None and (waiting := await self._what_waits()) is not None:
            # To complete the run would take it from the people who are asked.
            _log.warning(
                "execution %s stays open: its %s waits for a person. Enter the execution again under this id to go "
                "on; to end it all the same, set run.result or call run.complete()",
                self.id,
                waiting,
            )
            return
        try:
            # The given object may have been changed since.
            _check_result(self._result, "run.result")
            await self.complete(self._result)
        except PlacetError as refused:
            # The block cannot be ended again: if its result is refused, the run has failed.
            if ends(refused) and not isinstance(refused, ExecutionClosed):
                told = recordable_failure(refused, await self.channel.is_exposed())
                await self._tell_failed(told.value)
            raise

    async def _what_waits(self) -> str | None:
        """What was asked or proposed here and is still open; another task or process may have ended it meanwhile."""
        for request_id in self.unanswered:
            if (await AsyncRequests(self.channel).get(request_id, execution_id=self.id)).pending:
                return f"question {request_id}"
        for call_id in tuple(self._undecided):
            try:
                call = await read_call(self.channel, self.id, call_id)
            except NotFound:
                # It was abandoned before it was proposed.
                continue
            if call.pending or call.status == "released":
                return f"call {call_id}"
        return None

    async def _tell_failed(self, reason: str) -> None:
        try:
            await self.fail(reason[:MOST_ERROR_CHARS])
        except ExecutionClosed:
            # A rejection under `on_reject: halt`, or another client, has ended it.
            _log.debug("execution %s had already ended", self.id)
        except PlacetError as unsaid:
            # The block's own error is what its caller must see.
            _log.warning("execution %s stays open: its failure could not be reported (%s)", self.id, unsaid)

    async def complete(self, result: Any = None) -> Execution:
        """End it with its result.

        Raises:
            ResultNotJson: the result is not JSON; nothing was ended.
        """
        _check_result(result, "the result")
        return await self._end(self._executions.complete(self.id, result))

    async def fail(self, reason: str) -> Execution:
        """End it with an error."""
        return await self._end(self._executions.fail(self.id, reason))

    async def cancel(self, reason: str = "") -> Execution:
        """End it without a result."""
        return await self._end(self._executions.cancel(self.id, reason))

    async def _end(self, ending: Awaitable[Execution]) -> Execution:
        self._finished = True
        execution = await ending
        # Not before: a run that could not be ended goes on with its variables.
        self.channel.taken.forget(self.id)
        return execution

    async def ask(self, question: str, *, timeout_s: float | None = None, **more: Any) -> HumanRequest:
        """Ask a person within this execution and wait for the answer; see `requests.ask`.

        The same question is the same request when a restarted process asks it, and when it is asked again while it is
        open: after `timeout_s`, a cancellation or an interrupt.
        """
        return await self.ask_in(self.begin(), question, timeout_s=timeout_s, **more)

    async def ask_in(
        self, one: Try, question: str, /, *, timeout_s: float | None = None, **more: Any
    ) -> HumanRequest:
        """`ask` as one try, which an error abandons."""
        with one.left_by_errors():
            asked = await self._opened(one, question, more)
            found = await AsyncRequests(self.channel).wait(asked, timeout_s=timeout_s)
            self._note(asked, found.pending)
        if found.pending:
            one.leave()
        return found

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The ids of the questions that were asked here, and still waited when they were last looked at."""
        return tuple(self._unanswered)

    def _note(self, asked: HumanRequest, is_open: bool) -> None:
        (self._unanswered.add if is_open else self._unanswered.discard)(asked.request_id)

    async def _opened(self, one: Try, question: str, more: Mapping[str, Any]) -> HumanRequest:
        request_id = more.get("request_id")
        if request_id is None:
            # What is asked, not for how long: a time that is computed anew would make it another question.
            what = {name: value for name, value in more.items() if name not in _TIMES}
            said = json.dumps([question, what], sort_keys=True, default=repr)
            request_id = one.number("request", sha256_hex(said.encode()))
        named = {**more, "request_id": request_id}
        asked = await AsyncRequests(self.channel).ask(question, execution_id=self.id, **named)
        self._note(asked, asked.pending)
        return asked

    async def roll_back(self, denied: Denied, compensations: Mapping[str, Compensate]) -> list[Undone]:
        """Undo what a rejection under `on_reject: rollback` names, newest first.

        Args:
            denied: the error that the rejected call raised.
            compensations: by tool, the function that undoes one call; best a gated function, or a coroutine of one.

        If it is requested again, calls that were undone are not undone a second time.
        """
        return await undo(await calls_to_undo(self.channel, denied), compensations, self._undone)

    async def ask_env(
        self, *variables: Variable, question: str = "", timeout_s: float | None = None, **more: Any
    ) -> Mapping[str, str]:
        """Ask a person for environment variables and take them; only this process receives them, and the log never.

        It has them until the run or turn ends, also if this is run again. If another process has taken them, or they
        were erased since, a person is asked again.

        Args:
            variables: each a name, or a dict with a `name` and optionally `description`, `required` (True), `secret`
                (True) and `pattern`. One that is not required can be missing from the answer.
            question: what to ask; made from the names by default.
            timeout_s: how long this process waits.
            more: `timeout_seconds` and `remind_after_seconds` of the question, see `requests.ask`.

        Raises:
            NotReleased: they were not given.
            HITLPending: nobody has given them within `timeout_s`.
            TypeError: a variable is neither a name nor a dict.
        """
        return await self.ask_env_in(self.begin(), *variables, question=question, timeout_s=timeout_s, **more)

    async def ask_env_in(
        self, one: Try, *variables: Variable, question: str = "", timeout_s: float | None = None, **more: Any
    ) -> Mapping[str, str]:
        """`ask_env` as one try, which an error abandons."""
        check_variables(variables)
        given = {name: value for name, value in more.items() if value is not None}
        asked = {"fields": list(variables), **given}
        with one.left_by_errors():
            return await self._variables(one, asked, question or question_for(variables), timeout_s)

    async def _variables(
        self, one: Try, more: Mapping[str, Any], said: str, timeout_s: float | None
    ) -> Mapping[str, str]:
        requests = AsyncRequests(self.channel)
        while True:
            asked = await self._opened(one, said, {"kind": "env_var", **more})
            found = await requests.wait(asked, timeout_s=timeout_s)
            self._note(asked, found.pending)
            attempt = one.consuming(found.request_id)
            try:
                values = await requests.take_secrets(found, attempt_id=attempt.id)
                self.channel.taken.keep(self.id, found.request_id, values)
                return values
            except NotReleased:
                if not found.pending:
                    # Rejected or expired: if asked again, it is a new question.
                    one.spend()
                raise
            except AlreadyConsumed:
                # By this process, if the run is entered again; the gateway has checked that they are not erased.
                if (kept := self.channel.taken.of(self.id, found.request_id)) is not None:
                    return kept
                one.lost()
            except Expired:
                self.channel.taken.drop(self.id, found.request_id)
                # It was answered while this process waited, so it cannot be that of an earlier process.
                if asked.pending:
                    raise
                one.lost()

    @overload
    def gated(self, function: F, /) -> F: ...
    @overload
    def gated(self, /, **options: Unpack[GatedOptions]) -> Callable[[F], F]: ...
    def gated(self, function: F | None = None, /, **options: Unpack[GatedOptions]) -> F | Callable[[F], F]:
        """Gate a function by this execution; see `placet.gated_options.Options`.

        A synchronous function becomes awaitable and runs in a thread.
        """
        return decorate(lambda: self, function, options)

    @property
    def blocks(self) -> bool:
        """See `Run`."""
        return False

    def block(self, make: Make[T]) -> T:
        """See `Run`: an asynchronous execution never blocks."""
        raise RuntimeError("an asynchronous execution must be awaited and cannot block")

    def wait(self, make: Make[T]) -> Awaitable[T]:
        """See `Run`."""
        return make()

    async def until_stopped(self, make: Make[T]) -> T:
        """See `Run`: whoever stops it cancels it."""
        return await make()

    def background(self, make: Make[None]) -> asyncio.Task[None]:
        """See `Run`."""
        return asyncio.get_running_loop().create_task(make())

    def begin(self) -> Try:
        """See `Run`."""
        return Try(self._tries)

    def give_back(self, one: Try) -> None:
        """See `Run`."""
        one.leave()

    def waits_for(self, call_id: str) -> None:
        """See `Run`."""
        self._undecided.add(call_id)

    def proposal(self, one: Try, options: Options, tool: str, arguments: Mapping[str, Any]) -> Proposal:
        """See `Run`."""
        if any(name in arguments for name in options.sensitive):
            self.channel.exposed.add()
        return Proposal(
            execution_id=self.id,
            call_id=_call_id(one, options, tool, arguments),
            tool=tool,
            arguments=arguments,
            agent=self._agent,
            annotations=options.annotations,
            context=options.context,
            reason=options.reason,
        )


def question_for(variables: Sequence[Variable]) -> str:
    """The question for variables where the agent gives none."""
    names = [one if isinstance(one, str) else str(one.get("name")) for one in variables]
    return f"Give the variables {', '.join(names)}."


def _check_result(value: Any, what: str) -> None:
    try:
        check_json(value, what)
    except (TypeError, ValueError) as error:
        raise ResultNotJson(str(error)) from error


def ends(error: BaseException | None) -> bool:
    """Returns True if a run ends when its block is left by an error, or by none; else it stays open."""
    if error is None:
        return True
    # Several at once (ExceptionGroup, of Python 3.11): the run stays open if one of them would leave it open.
    within = getattr(error, "exceptions", None)
    if isinstance(within, tuple):
        return all(ends(each) for each in within if isinstance(each, BaseException))
    return isinstance(error, Exception) and not (isinstance(error, PlacetError) and error.acts != "stop")
