"""Where heads are stored, how often they are signed, and where they are posted to: for settings and commands.

Every role reads the settings, so this module imports nothing that only the storing of heads needs.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from host.errors import SettingsRefused

DEFAULT_EVENTS = 1_000
DEFAULT_SECONDS = 10.0


def heads_dir(settings: Mapping[str, str]) -> Path:
    """The directory of the heads: `audit_heads_dir`, by default in the data directory."""
    given = settings.get("audit_heads_dir")
    return Path(given) if given else Path(settings["data_dir"]) / "audit" / "heads"


def checked_address(url: str, setting: str = "audit_webhook") -> str:
    """Returns the address, if heads can be posted to it.

    Args:
        url: the address.
        setting: the name of its setting, for the error.

    Raises:
        SettingsRefused: it is not an HTTP address, or contains a password.
    """
    refused = SettingsRefused(f"{setting} must be an address like https://keeper.example/heads.")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("https", "http") and parts.hostname and parts.port != 0
    except ValueError:
        # Not chained: the cause quotes the address, which can contain a secret.
        raise refused from None
    if not is_address:
        raise refused
    if parts.username or parts.password:
        raise SettingsRefused(
            f"{setting} must not contain a password: the receiver verifies the heads by their key."
        )
    return url
