"""The projector process."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Mapping

import uvloop

from projections.audit.settings import AUDIT_ERRORS, Audit, opened_audit
from projections.log_errors import LogError
from projections.projector import Projector
from projections.store.port import ViewError
from projections.store.urls import open_view
from projections.tail_kafka import KafkaAddress, KafkaTail
from schemas.kafka_settings import KafkaSettingsRefused, client_settings
from schemas.seals import load_seals
from schemas.status_file import write_status
from schemas.topics import Topics

EXIT_NOT_REACHABLE = 3
# Batches make thousands of objects that all live until the batch is written: the default looks at them
# again after every 700.
GC_THRESHOLD = 50_000

logger = logging.getLogger(__name__)


def run(settings: Mapping[str, str]) -> None:
    """Run a projector until SIGTERM or SIGINT.

    Args:
        settings: see docs/architecture.md, Processes.

    Raises:
        SystemExit: 3 with one sentence, where the log or the view cannot be used.
    """
    gc.set_threshold(GC_THRESHOLD)
    try:
        uvloop.run(_serve(settings))
    except (LogError, ViewError, KafkaSettingsRefused, *AUDIT_ERRORS) as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(EXIT_NOT_REACHABLE) from error


async def _serve(settings: Mapping[str, str]) -> None:
    status_file = settings.get("status_file", "")
    write_status(status_file, "starting")
    async with opened_audit(settings) as audit:
        await _project(settings, status_file, audit)


async def _project(settings: Mapping[str, str], status_file: str, audit: Audit) -> None:
    tail = KafkaTail(kafka_address(settings))
    await tail.open()
    projector = Projector(
        tail,
        open_store=lambda: open_view(settings["database_url"]),
        topics=Topics(settings.get("topic_prefix") or "placet"),
        tell=lambda state, behind: write_status(status_file, state, behind=behind),
        heads=audit.keeper,
        seals=load_seals(settings),
    )
    audit.on_failure = projector.stop
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, projector.stop)
    try:
        await projector.run()
    finally:
        await tail.close()
        write_status(status_file, "stopping")


def kafka_address(settings: Mapping[str, str]) -> KafkaAddress:
    """The cluster of a role's settings; `kafka_settings` is the path of a JSON file, or empty."""
    return KafkaAddress(settings["bootstrap_servers"], client_settings(settings.get("kafka_settings")))
