"""Where heads are kept, how often they are signed, and where they are posted to: what settings and commands name.

Every role reads the settings, so nothing is imported here that only the keeping itself needs.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from host.errors import SettingsRefused

DEFAULT_EVENTS = 1_000
DEFAULT_SECONDS = 10.0


def heads_dir(settings: Mapping[str, str]) -> Path:
    """Where the heads are kept: `audit_heads_dir`, by default in the data directory."""
    given = settings.get("audit_heads_dir")
    return Path(given) if given else Path(settings["data_dir"]) / "audit" / "heads"


def checked_address(url: str, setting: str = "audit_webhook") -> str:
    """The address, where heads may be posted to it.

    Args:
        url: the address.
        setting: what it was given by, as the error names it.

    Raises:
        SettingsRefused: it is no HTTP address, or has a password in it.
    """
    refused = SettingsRefused(f"{setting} must be an address like https://keeper.example/heads.")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("https", "http") and parts.hostname and parts.port != 0
    except ValueError:
        # Not chained: the reason quotes the address, in which a secret may stand.
        raise refused from None
    if not is_address:
        raise refused
    if parts.username or parts.password:
        raise SettingsRefused(
            f"{setting} must not hold a password: whoever takes heads knows them by their key."
        )
    return url
