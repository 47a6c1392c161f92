"""The trust role: settings in, a worker until SIGTERM, an exit code out."""

import asyncio
import logging
import os
from collections.abc import Mapping

import faust

from schemas.status_file import write_status
from services.processors.app import TrustApp, build
from services.processors.errors import EXIT_FAILED, TrustError
from services.processors.preflight import check_topics
from services.processors.settings import TrustSettings, read_settings
from services.processors.watchdog import Gauge, Watchdog

logger = logging.getLogger(__name__)


def run(settings: Mapping[str, str]) -> None:
    """Run the trust processor until SIGTERM.

    Args:
        settings: plain text, see docs/architecture.md; also `stall_after_s` and `session_timeout_s`.

    It ends the process: with 0 after a clean stop, else with the error's exit code, its sentence logged.
    """
    try:
        code = _run(read_settings(settings))
    except TrustError as error:
        logger.critical(str(error))
        code = error.exit_code
    logging.shutdown()
    # Not sys.exit: after a crash faust's threads go on, and would keep the process from ending.
    os._exit(code)


def _run(settings: TrustSettings) -> int:
    write_status(settings.status_file, "starting")
    topic_id = asyncio.run(check_topics(settings))
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    trust = build(settings, topic_id, lambda: write_status(settings.status_file, "ready"))
    worker = faust.Worker(
        trust.app, quiet=True, override_logging=False, redirect_stdouts=False, loop=asyncio.new_event_loop()
    )
    worker.spinner = None
    watchdog = _watchdog(settings, trust, worker)
    watchdog.start()
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        return _exit_code(end, worker.crash_reason)
    finally:
        watchdog.stop()


def _watchdog(settings: TrustSettings, trust: TrustApp, worker: faust.Worker) -> Watchdog:
    def read(timeout_s: float) -> Mapping[str, Gauge]:
        asked = asyncio.run_coroutine_threadsafe(trust.processor.gauges(), worker.loop)
        try:
            return asked.result(timeout_s)
        finally:
            asked.cancel()

    return Watchdog(settings.stall_after_s, trust.lease, read)


def _exit_code(end: SystemExit, reason: BaseException | None) -> int:
    if isinstance(reason, TrustError):
        raise reason
    if reason is not None:
        logger.critical("the trust processor failed: %r", reason)
    return end.code if isinstance(end.code, int) else EXIT_FAILED
