"""The trust role: reads the settings, runs a worker until SIGTERM, and ends with an exit code."""

import asyncio
from collections.abc import Mapping

from services.processors.app import build
from services.processors.meters import TrustMeters
from services.processors.preflight import check_topics
from services.processors.settings import read_settings
from services.processors.worker import end_with, run_worker
from vitals.health_reporting import health_reporting

ROLE = "trust"


def run(settings: Mapping[str, str]) -> None:
    """Run the trust processor until SIGTERM.

    Args:
        settings: plain text, see docs/architecture.md; also `stall_after_s` and `session_timeout_s`.

    It ends the process: with 0 after a clean stop, else with the error's exit code and a log line.
    """
    end_with(lambda: _run(settings))


def _run(plain: Mapping[str, str]) -> int:
    settings = read_settings(plain, ROLE)
    with health_reporting(plain, ROLE) as health:
        topic_id = asyncio.run(check_topics(settings, settings.topics.trust))
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        trust = build(settings, topic_id)
        trust.processor.meters = TrustMeters(health.registry)
        return run_worker(trust.app, settings, trust.lease, trust.processor.gauges, health)
