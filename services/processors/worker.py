"""A processor's process: faust's worker with a watchdog, until SIGTERM, and the exit code at its end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import faust
import uvloop

from host.errors import EXIT_FAILED, OperatorError
from host.garbage_collector import collect_seldom
from log.errors import LogFailing
from log.kafka.damage import failure, is_failure
from services.processors.ending import end_process
from services.processors.errors import exit_code_of
from services.processors.settings import ProcessorSettings
from services.processors.watchdog import REBALANCE, Gauge, Lease, Watchdog, WorkerStops
from vitals.health_reporting import HealthReporter
from vitals.heartbeat import READY, STARTING

logger = logging.getLogger(__name__)
ReadGauges = Callable[[], Awaitable[Mapping[str, Gauge]]]


def end_with(run: Callable[[], int]) -> None:
    """Run a processor, and end the process with its exit code."""
    # Faust makes dozens of objects for each message.
    collect_seldom()
    try:
        code = run()
    except OperatorError as error:
        logger.critical(str(error))
        code = exit_code_of(error)
    end_process(code)


def run_worker(
    app: faust.App, settings: ProcessorSettings, lease: Lease, gauges: ReadGauges, health: HealthReporter
) -> int:
    """Run faust's worker until SIGTERM or a crash.

    Args:
        app: the application.
        settings: the process's settings.
        lease: renewed by the watchdog.
        gauges: read by the watchdog, on the worker's loop.
        health: gets the gauges: if they can be read, the loop is running.

    Returns:
        The exit code.

    Raises:
        OperatorError: the error with which the application crashed.
    """
    worker = faust.Worker(
        app, quiet=True, override_logging=False, redirect_stdouts=False, loop=uvloop.new_event_loop()
    )
    worker.spinner = None
    watchdog = Watchdog(
        settings.stall_after_s, lease, _reader(worker, gauges), lambda seen: report(health, seen)
    )
    watchdog.start()
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        return _exit_code(end, worker.crash_reason, settings)
    finally:
        watchdog.stop()


def report(health: HealthReporter, gauges: Mapping[str, Gauge]) -> None:
    """Report the lag that gauges show: the process is ready while it is known, so not during a rebalance."""
    status = health.status
    if REBALANCE in gauges:
        status.progress(gauges[REBALANCE].position, None)
        if status.state == READY:
            health.set_state(STARTING)
        return
    # The watchdog may also watch items other than partitions, which are no lag in the log.
    reading = [gauge for name, gauge in gauges.items() if name.startswith("partition")] or list(
        gauges.values()
    )
    status.progress(sum(gauge.position for gauge in reading), sum(max(0, gauge.behind) for gauge in reading))
    # Not over the state of a process that stops.
    if status.state == STARTING:
        health.set_state(READY)


def _reader(worker: faust.Worker, gauges: ReadGauges) -> Callable[[float], Mapping[str, Gauge]]:
    async def look(timeout_s: float) -> Mapping[str, Gauge]:
        # The timeout is here: a cancellation from outside would need the loop, which may have ended.
        async with asyncio.timeout(timeout_s):
            return await gauges()

    def read(timeout_s: float) -> Mapping[str, Gauge]:
        looking = look(timeout_s)
        try:
            asked: Any = asyncio.run_coroutine_threadsafe(looking, worker.loop)
            found: Mapping[str, Gauge] = asked.result(timeout_s)
        except Exception as error:
            if worker.loop.is_closed():
                looking.close()
            if worker.should_stop:
                raise WorkerStops from error
            raise
        return found

    return read


def _exit_code(end: SystemExit, reason: BaseException | None, settings: ProcessorSettings) -> int:
    if isinstance(reason, OperatorError):
        raise reason
    if reason is not None and is_failure(reason):
        raise LogFailing(settings.bootstrap_servers, failure("what it reads or writes", reason))
    if reason is not None:
        logger.critical("the %s processor failed: %r", settings.role, reason)
    return end.code if isinstance(end.code, int) else EXIT_FAILED
