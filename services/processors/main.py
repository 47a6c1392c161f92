"""The trust role: settings in, a worker until SIGTERM, an exit code out."""

import asyncio
from collections.abc import Mapping

from schemas.status_file import write_status
from services.processors.app import build
from services.processors.preflight import check_topics
from services.processors.settings import TrustSettings, read_settings
from services.processors.worker import end_with, run_worker


def run(settings: Mapping[str, str]) -> None:
    """Run the trust processor until SIGTERM.

    Args:
        settings: plain text, see docs/architecture.md; also `stall_after_s` and `session_timeout_s`.

    It ends the process: with 0 after a clean stop, else with the error's exit code, its sentence logged.
    """
    end_with(lambda: _run(read_settings(settings)))


def _run(settings: TrustSettings) -> int:
    write_status(settings.status_file, "starting")
    topic_id = asyncio.run(check_topics(settings, settings.topics.trust))
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    trust = build(settings, topic_id, lambda: write_status(settings.status_file, "ready"))
    return run_worker(trust.app, settings, trust.lease, trust.processor.gauges)
