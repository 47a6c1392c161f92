"""The decorator that makes a function run only after its call was released."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from placet import asks, tracing
from placet.beginning import NotBegun, check_lease, in_time, told_to_a_future, whole
from placet.binding import Binding
from placet.bodies import check_has_run, is_coroutine_function
from placet.channel import Channel
from placet.errors import Denied, NoExecution, OutputNotRecorded, StillHeld, ToolFailed
from placet.gate import Cleared, Proposal, Replayed, clear
from placet.gated_options import GatedOptions, Options
from placet.lease import Stoppable, alive, beating
from placet.loopthread import Make
from placet.models import ToolCall
from placet.recording import Recordable, is_plain, recordable_failure, recordable_output
from placet.registering import declare, register_once
from placet.reporting import report_failure, report_success
from placet.threads import Place
from placet.tries import Try

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
# The recorded end of a call: once it was reported to the caller, an equal call is a new one.
ENDED = (Denied, ToolFailed, OutputNotRecorded)
_kept: set[asyncio.Task[Any]] = set()


class Run(Protocol):
    """An execution in progress, sync or async."""

    @property
    def channel(self) -> Channel:
        """The channel to the gateway."""

    @property
    def blocks(self) -> bool:
        """True if synchronous functions are gated by blocking, False if by a coroutine."""

    @property
    def wait_s(self) -> float | None:
        """How long a held call waits for a person, unless its function says; None: as long as the hold does."""

    def block(self, make: Make[T]) -> T:
        """Run the coroutine that `make` returns from a thread that can block."""

    def wait(self, make: Make[T]) -> Awaitable[T]:
        """Run a coroutine of the client from another coroutine."""

    async def until_stopped(self, make: Make[T]) -> T:
        """Await what can take as long as a person does, on the client's loop."""

    def background(self, make: Make[None]) -> Stoppable:
        """Run a coroutine of the client in the background."""

    def begin(self) -> Try:
        """One try of a call or a question."""

    def give_back(self, one: Try) -> None:
        """The caller did not receive the end: the next equal call is a retry of this one."""

    def waits_for(self, call_id: str) -> None:
        """The caller no longer waits for the decision of a call: the block may be left before it."""

    def proposal(self, one: Try, options: Options, tool: str, arguments: Mapping[str, Any]) -> Proposal:
        """The call's proposal with its id."""


current_run: ContextVar[Run | None] = ContextVar("placet_run", default=None)
_current_call: ContextVar[ToolCall | None] = ContextVar("placet_call", default=None)


def current_call() -> ToolCall:
    """The released call that is running; pass its `idempotency_key` to external services.

    Raises:
        NoExecution: no gated function is running.
    """
    call = _current_call.get()
    if call is None:
        raise NoExecution("current_call() has an answer only while a gated function runs")
    return call


def _run_of_context() -> Run:
    run = current_run.get()
    if run is None:
        raise NoExecution(
            "a gated function was called outside an execution: use `with placet.execution(...) as run`,"
            " or decorate with `run.gated` where another thread calls it"
        )
    return run


@overload
def gated(function: F, /) -> F: ...
@overload
def gated(**options: Unpack[GatedOptions]) -> Callable[[F], F]: ...
def gated(function: F | None = None, /, **options: Unpack[GatedOptions]) -> F | Callable[[F], F]:
    """Gate a function by the execution that it is called in.

    Args:
        function: when used without parentheses.
        **options: see `Options`.
    """
    return decorate(_run_of_context, function, options)


def decorate(find_run: Callable[[], Run], function: F | None, options: GatedOptions) -> F | Callable[[F], F]:
    """The decorator, with a function that finds the execution."""
    chosen = Options(**options)
    if function is not None:
        return _wrap(find_run, function, chosen)
    return lambda given: _wrap(find_run, given, chosen)


def _wrap(find_run: Callable[[], Run], function: F, options: Options) -> F:
    binding = Binding.of(function)

    @functools.wraps(function)
    async def gated_async(*args: Any, **kwargs: Any) -> Any:
        run, arguments = find_run(), binding.arguments(args, kwargs)
        return await _gate_async(run, binding, _for_this_call(options, arguments), arguments)

    @functools.wraps(function)
    def gated_sync(*args: Any, **kwargs: Any) -> Any:
        run, arguments = find_run(), binding.arguments(args, kwargs)
        chosen = _for_this_call(options, arguments)
        if run.blocks:
            return _gate_blocking(run, binding, chosen, arguments)
        return _gate_async(run, binding, chosen, arguments)

    wrapped: Any = gated_async if is_coroutine_function(function) else gated_sync
    declare(wrapped, binding, options)
    return wrapped  # type: ignore[no-any-return]


def _for_this_call(options: Options, arguments: Mapping[str, Any]) -> Options:
    """The options with the call's own id, which is computed on the caller's thread."""
    return replace(options, call_id=options.call_id(arguments)) if callable(options.call_id) else options


async def _passage(
    run: Run, one: Try, binding: Binding, options: Options, arguments: Mapping[str, Any]
) -> Cleared | Replayed:
    with one.left_by_errors(but=ENDED):
        if options.register:
            await register_once(run.channel, binding, options)
        proposal = run.proposal(one, options, options.tool or binding.function.__name__, arguments)
        within_s = run.wait_s if options.timeout_s is None else options.timeout_s
        try:
            return await run.until_stopped(
                partial(clear, run.channel, one, proposal, binding.call, options.timeout_s, within_s)
            )
        except (StillHeld, asyncio.CancelledError):
            run.waits_for(proposal.call_id)
            raise


def _gate_blocking(run: Run, binding: Binding, options: Options, arguments: Mapping[str, Any]) -> Any:
    one = run.begin()
    try:
        return _run_blocking(run, one, binding, options, arguments)
    except BaseException as error:
        if not _tells_the_end(error, one):
            run.give_back(one)
        raise


async def _gate_async(run: Run, binding: Binding, options: Options, arguments: Mapping[str, Any]) -> Any:
    one = run.begin()
    if not is_coroutine_function(binding.function):
        one.place = Place(run.channel.threads)
    try:
        return await _run_async(run, one, binding, options, arguments)
    except BaseException as error:
        if not _tells_the_end(error, one):
            run.give_back(one)
        raise
    finally:
        # A thread keeps it until its end, also if its caller waits no longer.
        if not one.started:
            one.place.leave()


def _tells_the_end(error: BaseException, one: Try) -> bool:
    return error is one.failure if one.started else isinstance(error, ENDED)


def _run_blocking(
    run: Run, one: Try, binding: Binding, options: Options, arguments: Mapping[str, Any]
) -> Any:
    try:
        passed = run.block(partial(_passage, run, one, binding, options, arguments))
    except Denied as denied:
        return _answer_denied(denied, options)
    if isinstance(passed, Replayed):
        return passed.output
    with _run_span(passed, one):
        return _run_cleared(run, one, binding, options, passed)


def _run_cleared(run: Run, one: Try, binding: Binding, options: Options, passed: Cleared) -> Any:
    bound, clock = binding.call(passed.arguments), _Stopwatch()
    one.started = True
    signs = _signs_of_life(run, passed, lambda: one.is_over)
    try:
        with alive(signs), _running(passed.call):
            check_lease(passed)
            output = binding.function(*bound.args, **bound.kwargs)
            check_has_run(output, binding.name)
            ms, told = clock.ms(), recordable_output(output, options.encode)
    except NotBegun as error:
        raise error.told(one, passed) from None
    except Exception as failure:
        ms, is_exposed = clock.ms(), run.block(run.channel.is_exposed)
        why = recordable_failure(failure, is_exposed)
        run.block(partial(_to_its_end, partial(report_failure, run.channel, passed, why.value, ms)))
        why.go_on()
        one.failure = failure
        raise
    run.block(partial(_to_its_end, partial(report_success, run.channel, passed, output, told.value, ms)))
    told.go_on()
    return output


async def _run_async(
    run: Run, one: Try, binding: Binding, options: Options, arguments: Mapping[str, Any]
) -> Any:
    try:
        passed = await run.wait(partial(_passage, run, one, binding, options, arguments))
    except Denied as denied:
        return _answer_denied(denied, options)
    if isinstance(passed, Replayed):
        return passed.output
    with _run_span(passed, one):
        return await _await_cleared(run, one, binding, options, passed)


async def _await_cleared(run: Run, one: Try, binding: Binding, options: Options, passed: Cleared) -> Any:
    bound = binding.call(passed.arguments)
    one.started = True
    call = partial(in_time, passed, partial(binding.function, *bound.args, **bound.kwargs))
    if is_coroutine_function(binding.function):
        work = partial(whole, binding, passed, call)
        return await _reported(run, one, options, passed, work, lambda: one.is_over)
    # A thread cannot be cancelled: its lease is renewed and its result recorded, even if nobody waits for it.
    work = partial(whole, binding, passed, partial(one.place.run, partial(told_to_a_future, call)))
    return await _to_its_end(partial(_reported, run, one, options, passed, work, lambda: False))


async def _reported(
    run: Run,
    one: Try,
    options: Options,
    passed: Cleared,
    work: Callable[[], Awaitable[Any]],
    is_over: Callable[[], bool],
) -> Any:
    """Run the function and report its end (steps 6 and 7); `is_over` means that it certainly has stopped."""
    clock = _Stopwatch()
    try:
        with alive(_signs_of_life(run, passed, is_over)), _running(passed.call):
            output = await work()
    except NotBegun as error:
        raise error.told(one, passed) from None
    except Exception as failure:
        why = await _to_its_end(partial(_report_failure, run, passed, failure, clock.ms()))
        why.go_on()
        one.failure = failure
        raise
    told = await _to_its_end(partial(_report_output, run, options, passed, output, clock.ms()))
    told.go_on()
    return output


async def _report_failure(run: Run, passed: Cleared, failure: Exception, ms: int) -> Recordable[str]:
    with alive(_signs_of_life(run, passed, lambda: False)):
        is_exposed = await run.wait(run.channel.is_exposed)
        told = await _on_its_own_thread(partial(recordable_failure, failure, is_exposed))
    await run.wait(partial(_to_its_end, partial(report_failure, run.channel, passed, told.value, ms)))
    return told


async def _report_output(
    run: Run, options: Options, passed: Cleared, output: Any, ms: int
) -> Recordable[Any]:
    told = Recordable(output)
    if options.encode is not None or not is_plain(output):
        # On a thread: it can take long, while other calls and the lease renewals go on.
        with alive(_signs_of_life(run, passed, lambda: False)):
            told = await _on_its_own_thread(partial(recordable_output, output, options.encode))
    report = partial(report_success, run.channel, passed, output, told.value, ms)
    await run.wait(partial(_to_its_end, report))
    return told


async def _on_its_own_thread(make: Callable[[], T]) -> T:
    """The loop's pool can be full of functions that wait for this very call, so use another thread."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="placet-words")
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, copy_context().run, make)
    finally:
        pool.shutdown(wait=False)


async def _to_its_end(make: Make[T]) -> T:
    """Run something to its end even if its caller is cancelled: the result must reach the log."""
    task = asyncio.ensure_future(make())
    # The loop itself keeps only a weak reference to it.
    _kept.add(task)
    task.add_done_callback(_drop)
    return await asyncio.shield(task)


def _drop(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    # If nobody waits for it any more, asyncio would print its exception, whose text can contain sensitive values.
    if not task.cancelled():
        task.exception()


def _signs_of_life(run: Run, passed: Cleared, is_over: Callable[[], bool]) -> Callable[[], Stoppable] | None:
    """The function that starts the renewals; None if the call has no lease."""
    lease, call = passed.lease, passed.call
    if lease is None:
        return None

    async def renew() -> Any:
        return await run.channel.ask(asks.heartbeat(call.execution_id, call.call_id, passed.attempt_id))

    return partial(run.background, partial(beating, lease, renew, is_over))


def _answer_denied(denied: Denied, options: Options) -> str:
    if options.on_denied == "return":
        # Feedback alone would not name the calls that the rule requires to be undone.
        return str(denied) if denied.rollback else denied.feedback or str(denied)
    raise denied


def _run_span(passed: Cleared, one: Try) -> AbstractContextManager[str]:
    """The span of the run and the report of its end, in the trace of the proposal."""
    call = passed.call
    facts = tracing.facts_of_call(call.execution_id, call.call_id, call.tool)
    return tracing.span("placet.run", facts, one.trace, is_request=False)


@contextmanager
def _running(call: ToolCall) -> Iterator[None]:
    token = _current_call.set(call)
    try:
        yield
    finally:
        _current_call.reset(token)


class _Stopwatch:
    def __init__(self) -> None:
        self._started_ns = time.perf_counter_ns()

    def ms(self) -> int:
        return (time.perf_counter_ns() - self._started_ns) // 1_000_000
