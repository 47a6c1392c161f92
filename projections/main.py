"""The projector process."""

import asyncio
import logging
import signal
from collections.abc import Mapping

import uvloop

from host.errors import EXIT_UNREACHABLE, OperatorError, end_process
from host.garbage_collector import collect_seldom
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower, opened
from log.kafka.settings import client_settings
from projections.audit.settings import Audit, opened_audit
from projections.meters import Meters
from projections.projector import Projector
from projections.store.sqlite_damage import check_ahead
from projections.store.urls import check_sound, open_view, remove_leftovers
from schemas.event_signatures import load_signatures
from schemas.topics import Topics
from vitals.health_reporting import HealthReporter, health_reporting
from vitals.heartbeat import STOPPING

ROLE = "projector"

logger = logging.getLogger(__name__)


def run(settings: Mapping[str, str]) -> None:
    """Run a projector until SIGTERM or SIGINT.

    Args:
        settings: see docs/architecture.md, Processes.

    Raises:
        SystemExit: 3 with one sentence, if the log or the view cannot be used.
    """
    # A batch makes thousands of objects that all live until it is written.
    collect_seldom()
    try:
        with health_reporting(settings, ROLE) as health:
            uvloop.run(_serve(settings, health))
    except OperatorError as error:
        end_process(error, EXIT_UNREACHABLE)


async def _serve(settings: Mapping[str, str], health: HealthReporter) -> None:
    async with opened_audit(settings) as audit:
        await _project(settings, health, audit)


async def _project(settings: Mapping[str, str], health: HealthReporter, audit: Audit) -> None:
    looked = await check_ahead(lambda: check_sound(settings["database_url"]))
    # Closed also if the database is away: what is left open is reported after the error, as if it were the cause.
    async with opened(kafka_address(settings), BULK) as tail:
        await asyncio.to_thread(remove_leftovers, settings["database_url"])
        projector = _projector(settings, health, audit, tail)
        audit.on_failure = projector.stop
        looked.add_done_callback(lambda ended: projector.stop() if ended.exception() else None)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, projector.stop)
        updating = asyncio.create_task(
            health.keep_updating(lambda: health.status.progress(*projector.progress()))
        )
        try:
            await projector.run()
            if looked.done():
                looked.result()
        finally:
            updating.cancel()
            health.set_state(STOPPING)


def _projector(
    settings: Mapping[str, str], health: HealthReporter, audit: Audit, tail: Follower
) -> Projector:
    return Projector(
        tail,
        open_store=lambda: open_view(settings["database_url"]),
        topics=Topics(settings.get("topic_prefix") or "placet"),
        tell=lambda state: health.set_state(state),
        heads=audit.head_signer,
        signatures=load_signatures(settings),
        meters=Meters(health.registry),
    )


def kafka_address(settings: Mapping[str, str]) -> KafkaSettings:
    """The cluster in a role's settings; `kafka_settings` is the path of a JSON file, or empty."""
    return KafkaSettings(settings["bootstrap_servers"], client_settings(settings.get("kafka_settings")))
