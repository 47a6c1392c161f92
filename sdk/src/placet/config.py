"""Where the gateway is and who asks: arguments first, then the environment, then `.placet/` here."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from placet.errors import PlacetError

DATA_DIR = ".placet"


class NotConfigured(PlacetError):
    """There is no gateway to talk to, or no token for it."""

    acts = "operator"


@dataclass(frozen=True)
class Config:
    """A gateway's address and the token to show there."""

    url: str
    token: str = field(repr=False)


def find_config(url: str | None = None, token: str | None = None, data_dir: Path | None = None) -> Config:
    """The gateway to use.

    Args:
        url: overrides `PLACET_URL`.
        token: overrides `PLACET_TOKEN`.
        data_dir: where `placet up` wrote `placet.json` and `admin.token`; `.placet` here by default. Its
            token is only sent to its own address.

    Raises:
        NotConfigured: no address or no token was found.
    """
    directory = data_dir or Path(DATA_DIR)
    local_url = _local_url(directory)
    found_url = url or os.environ.get("PLACET_URL") or local_url
    if not found_url:
        raise NotConfigured(
            "No gateway is known: set PLACET_URL, or run this where `placet up` keeps .placet/."
        )
    found_token = token or os.environ.get("PLACET_TOKEN") or ""
    if not found_token and found_url.rstrip("/") == local_url:
        found_token = _local_token(directory)
    if not found_token:
        raise NotConfigured(f"No token for {found_url}: set PLACET_TOKEN (see `placet token issue`).")
    return Config(found_url.rstrip("/"), found_token)


def _local_url(directory: Path) -> str:
    path = directory / "placet.json"
    if not path.is_file():
        return ""
    try:
        url = json.loads(path.read_text("utf-8")).get("url", "")
    except (OSError, ValueError, AttributeError) as error:
        raise NotConfigured(f"{path} can't be read ({error}); set PLACET_URL instead.") from error
    return str(url).rstrip("/")


def _local_token(directory: Path) -> str:
    path = directory / "admin.token"
    try:
        return path.read_text("utf-8").strip() if path.is_file() else ""
    except OSError as error:
        raise NotConfigured(f"{path} can't be read ({error}); set PLACET_TOKEN instead.") from error
