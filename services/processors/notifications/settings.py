"""The settings of the notifier, from the plain text that the role is started with."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from host.errors import SettingsRefused
from services.processors.settings import ProcessorSettings, read_settings

ROLE = "notifier"


@dataclass(frozen=True)
class NotifierSettings(ProcessorSettings):
    """What the notifier runs with, beside what every processor has.

    Attributes:
        notifications_file: What is told to whom.
        gateway_url: Where people open a hold, when the file does not say.
    """

    notifications_file: Path = Path()
    gateway_url: str = ""

    @property
    def outbox(self) -> Path:
        """What is to be sent, and how far the log was read: the notifier's own memory."""
        return self.data_dir / "run" / ROLE / "outbox.db"


def read_notifier_settings(settings: Mapping[str, str]) -> NotifierSettings:
    """The settings in a role's plain text (docs/architecture.md, Processes).

    Raises:
        SettingsRefused: one is missing or is no number.
    """
    common = read_settings(settings, ROLE)
    file = settings.get("notifications_file")
    if not file:
        raise SettingsRefused("The notifier has no notifications file: start with --notifications FILE.")
    shared = {field.name: getattr(common, field.name) for field in dataclasses.fields(common)}
    return NotifierSettings(
        **shared, notifications_file=Path(file), gateway_url=settings.get("gateway_url", "")
    )
