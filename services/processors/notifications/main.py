"""The notifier role: reads settings and the notifications file, runs until SIGTERM, and ends with an exit code."""

import asyncio
import os
from collections.abc import Mapping

from host.errors import SettingsRefused
from host.outgoing_tls import TlsRefused, trust_for_libraries
from services.processors.notifications.app import build
from services.processors.notifications.apprise_channel import silence_libraries
from services.processors.notifications.config import Notifications, load_notifications
from services.processors.notifications.document import NotificationsRefused
from services.processors.notifications.meters import NotifierMeters
from services.processors.notifications.outbox import Outbox
from services.processors.notifications.settings import ROLE, NotifierSettings, read_notifier_settings
from services.processors.preflight import check_topics
from services.processors.worker import end_with, run_worker
from vitals.health_reporting import health_reporting


def run(settings: Mapping[str, str]) -> None:
    """Run the notifier until SIGTERM.

    Args:
        settings: plain text, see docs/architecture.md; also `notifications_file`, `gateway_url`, `stall_after_s` and
            `session_timeout_s`.

    It ends the process: with 0 after a clean stop, else with the error's exit code and a log line.
    """
    end_with(lambda: _run(settings))


def _run(plain: Mapping[str, str]) -> int:
    settings = read_notifier_settings(plain)
    with health_reporting(plain, ROLE) as health:
        silence_libraries()
        _believe(settings)
        notifications = _notifications(settings)
        topic_id = asyncio.run(check_topics(settings, settings.topics.dead_letters))
        outbox = Outbox(settings.outbox)
        app, notifier, lease = build(settings, topic_id, notifications, outbox)
        notifier.count_with(NotifierMeters(health.registry))
        return run_worker(app, settings, lease, notifier.gauges, health)


def _believe(settings: NotifierSettings) -> None:
    """Make apprise trust the same certificates as the rest of the process."""
    try:
        trust_for_libraries(settings.outbox.with_name("authorities.pem"))
    except TlsRefused as error:
        raise SettingsRefused(f"{error}.") from error


def _notifications(settings: NotifierSettings) -> Notifications:
    try:
        return load_notifications(settings.notifications_file, os.environ, settings.gateway_url)
    except NotificationsRefused as error:
        raise SettingsRefused(
            f"The notifications file {settings.notifications_file} cannot be used: {error}."
        ) from error
