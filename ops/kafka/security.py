"""The file of SASL and TLS settings, as an operator's command reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from host.errors import SettingsRefused
from log.kafka import settings as kafka_settings
from ops.errors import UsageError


def client_settings(path: Path | None) -> dict[str, Any]:
    """Keyword arguments for any of aiokafka's clients; none without a file.

    Raises:
        UsageError: The file cannot be used.
    """
    try:
        return kafka_settings.client_settings(path)
    except SettingsRefused as error:
        raise UsageError(f"{error}.") from error
