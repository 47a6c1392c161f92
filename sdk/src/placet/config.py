"""Finds the gateway's address and token: in arguments, the environment, or the directory of `placet up`.

The directory is `PLACET_DATA_DIR`, as for the commands on the stack, else `.placet/` here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from placet.errors import PlacetError

DATA_DIR = ".placet"
# Characters that a header cannot carry, and that bearer tokens (RFC 6750) and projects' names do not have either.
_NOT_IN_A_HEADER = re.compile(r"[^\x21-\x7e]")
_NOT_IN_AN_ADDRESS = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]")


class NotConfigured(PlacetError):
    """No gateway is configured, or no token for it."""

    acts = "operator"


class SettingRefused(NotConfigured):
    """A setting cannot be used. The message names the setting, never its value, which may contain a secret.

    Attributes:
        setting: the source of the value, such as `PLACET_TOKEN`.
    """

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(f"{setting} {why}")
        self.setting = setting


@dataclass(frozen=True)
class Config:
    """A gateway's address and the token for it."""

    url: str
    token: str = field(repr=False)


def find_config(url: str | None = None, token: str | None = None, data_dir: Path | None = None) -> Config:
    """The gateway to use.

    Args:
        url: overrides `PLACET_URL`.
        token: overrides `PLACET_TOKEN`.
        data_dir: the directory where `placet up` wrote `placet.json` and `admin.token`; by default
            `PLACET_DATA_DIR`, else `.placet` here. Its token is only sent to its own address.

    Raises:
        NotConfigured: no address or no token was found.
        SettingRefused: one of them cannot be used, or is empty; its value is not shown.
    """
    directory = data_dir or _data_dir()
    found_url = find_url(url, directory)
    # An empty token never falls through to the next source: the request would have another identity.
    for setting, given in (
        ("The token that was given (token=, --token)", token),
        ("PLACET_TOKEN", os.environ.get("PLACET_TOKEN")),
    ):
        if given is not None:
            return Config(found_url, checked_token(setting, given))
    # At the address of a stopped stack, another program may listen by now.
    is_local = not _is_stopped(directory) and found_url == _local_url(directory)
    if is_local and (found := _local_token(directory)):
        return Config(found_url, found)
    raise NotConfigured(
        f"No token for {shown_address(found_url)}: set PLACET_TOKEN (see `placet token issue`)."
    )


def find_url(url: str | None = None, data_dir: Path | None = None) -> str:
    """The address of the gateway to use; see `find_config`.

    Raises:
        NotConfigured: none was found.
        SettingRefused: it is not the address of a gateway.
    """
    for setting, given in (
        ("The address that was given (url=, --url)", url),
        ("PLACET_URL", os.environ.get("PLACET_URL")),
    ):
        if given is not None:
            return checked_address(setting, given)
    directory = data_dir or _data_dir()
    if found := _local_url(directory):
        if _is_stopped(directory):
            raise NotConfigured(f"Nothing runs in {directory}: start it with `placet up`, or set PLACET_URL.")
        return found
    if directory != Path(DATA_DIR):
        raise NotConfigured(
            f"No gateway is known: {directory} has no placet.json; set PLACET_URL, or `placet up` there."
        )
    raise NotConfigured("No gateway is known: set PLACET_URL, or run this where `placet up` keeps .placet/.")


def checked_token(setting: str, token: str) -> str:
    """A token without surrounding white space, such as the newline at the end of a file.

    Raises:
        SettingRefused: it is empty, or has a character that no header can carry.
    """
    stripped = _filled(setting, token)
    if bad := _NOT_IN_A_HEADER.search(stripped):
        raise SettingRefused(
            setting,
            f"contains a character that a token cannot contain (number {bad.start() + 1} of {len(stripped)}):"
            " give the one line that `placet token issue` printed.",
        )
    return stripped


def checked_source(token: Callable[[], str]) -> Callable[[], str]:
    """A source of tokens that checks each token before it is used.

    Returns:
        A function that raises `SettingRefused` if a token cannot be used.
    """

    def checked() -> str:
        return checked_token("What the function given as token= returned", token())

    return checked


def checked_header(setting: str, value: str) -> str:
    """A value that is sent in a header, without surrounding white space.

    Raises:
        SettingRefused: it is empty, or has a character that no header can carry.
    """
    stripped = _filled(setting, value)
    if _NOT_IN_A_HEADER.search(stripped):
        raise SettingRefused(setting, "contains a character that a header cannot contain.")
    return stripped


def checked_address(setting: str, url: str) -> str:
    """The address of a gateway, without the slash at its end.

    Raises:
        SettingRefused: it is not an address, is empty, or contains more than one: a user, a password, a token.
    """
    stripped = _filled(setting, url).rstrip("/")
    refused = SettingRefused(setting, "is not the address of a gateway: give http(s)://HOST:PORT.")
    if _NOT_IN_AN_ADDRESS.search(stripped):
        raise refused
    try:
        parts = urlsplit(stripped)
        port = parts.port
        host = (parts.hostname or "").encode("idna")
    except ValueError:
        # Not chained: the error's message quotes the value.
        raise refused from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise refused
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise SettingRefused(
            setting,
            "contains more than an address (a user, a password or a query): leave it out, and give the token with"
            " PLACET_TOKEN.",
        )
    if parts.path.endswith("/v1"):
        raise SettingRefused(setting, "ends with /v1: give the gateway's address without it.")
    return stripped


def shown_address(url: str) -> str:
    """An address as errors show it: only scheme, host and port, since a path can contain secrets."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('/', 1)[0].rpartition('@')[2]}"


def _data_dir() -> Path:
    """The directory of `placet up` that the environment names, else the one here."""
    return Path(os.environ.get("PLACET_DATA_DIR") or DATA_DIR).expanduser()


def _filled(setting: str, value: str) -> str:
    if stripped := value.strip():
        return stripped
    raise SettingRefused(setting, "is empty: give a value, or leave it out.")


def _local_url(directory: Path) -> str:
    path = directory / "placet.json"
    if not path.is_file():
        return ""
    try:
        url = json.loads(path.read_text("utf-8")).get("url", "")
    except (OSError, ValueError, AttributeError) as error:
        raise NotConfigured(f"{path} can't be read ({error}); set PLACET_URL instead.") from error
    return checked_address(f"The address in {path}", url) if isinstance(url, str) and url else ""


def _is_stopped(directory: Path) -> bool:
    """Returns True if `placet up` ran there and has stopped; False if unknown, as without `placet up`."""
    try:
        stack = json.loads((directory / "run" / "stack.json").read_text("utf-8"))
        state, pid = stack["state"], stack["pid"]
        found = directory.stat()
        if stack.get("place") not in (None, [found.st_dev, found.st_ino]):
            # The file was copied while the stack ran in another directory.
            return True
        if state not in ("stopped", "failed") and _started_ticks(pid) not in (None, stack["started"]):
            return True
    except ProcessLookupError:
        return True
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return False
    return state in ("stopped", "failed")


def _started_ticks(pid: int) -> int | None:
    """The start time of a process, in clock ticks since boot (proc(5), field 22); None if it cannot be found out.

    Raises:
        ProcessLookupError: there is no such process.
    """
    with contextlib.suppress(PermissionError):
        os.kill(pid, 0)
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def _local_token(directory: Path) -> str:
    path = directory / "admin.token"
    try:
        text = path.read_text("utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        # Not chained: the decoding error quotes the text.
        raise NotConfigured(f"{path} can't be read ({why}); set PLACET_TOKEN instead.") from None
    return checked_token(f"The token in {path}", text)
