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
    """The settings of the notifier, in addition to those of every processor.

    Attributes:
        notifications_file: The file of notifications.
        gateway_url: The address at which people open a hold, if the file does not give one.
    """

    notifications_file: Path = Path()
    gateway_url: str = ""

    @property
    def outbox(self) -> Path:
        """The file of messages to send and of the position in the log: the notifier's own state."""
        return self.data_dir / "run" / ROLE / "outbox.db"


def read_notifier_settings(settings: Mapping[str, str]) -> NotifierSettings:
    """The settings in a role's plain text (docs/architecture.md, Processes).

    Raises:
        SettingsRefused: one is missing or is not a number.
    """
    common = read_settings(settings, ROLE)
    file = settings.get("notifications_file")
    if not file:
        raise SettingsRefused("The notifier has no notifications file: start with --notifications FILE.")
    shared = {field.name: getattr(common, field.name) for field in dataclasses.fields(common)}
    return NotifierSettings(
        **shared, notifications_file=Path(file), gateway_url=settings.get("gateway_url", "")
    )
