"""Where the gateway is and who asks: arguments first, then the environment, then `.placet/` here."""

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
# What a header can carry: RFC 6750 allows a bearer token no more, and neither a project's name.
_NOT_IN_A_HEADER = re.compile(r"[^\x21-\x7e]")
_NOT_IN_AN_ADDRESS = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]")


class NotConfigured(PlacetError):
    """There is no gateway to talk to, or no token for it."""

    acts = "operator"


class SettingRefused(NotConfigured):
    """A setting cannot be used. The message names the setting and never shows its value: it may hold a secret.

    Attributes:
        setting: where the value came from, such as `PLACET_TOKEN`.
    """

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(f"{setting} {why}")
        self.setting = setting


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
        SettingRefused: one of them cannot be used, or is empty; its value is not shown.
    """
    directory = data_dir or Path(DATA_DIR)
    found_url = find_url(url, directory)
    # An empty one never falls through to the next: the request would be made by somebody else.
    for setting, given in (
        ("The token that was given (token=, --token)", token),
        ("PLACET_TOKEN", os.environ.get("PLACET_TOKEN")),
    ):
        if given is not None:
            return Config(found_url, checked_token(setting, given))
    # At the address of a stack that was stopped somebody else may listen by now.
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
        SettingRefused: it is no address of a gateway.
    """
    for setting, given in (
        ("The address that was given (url=, --url)", url),
        ("PLACET_URL", os.environ.get("PLACET_URL")),
    ):
        if given is not None:
            return checked_address(setting, given)
    directory = data_dir or Path(DATA_DIR)
    if found := _local_url(directory):
        if _is_stopped(directory):
            raise NotConfigured(f"Nothing runs in {directory}: start it with `placet up`, or set PLACET_URL.")
        return found
    raise NotConfigured("No gateway is known: set PLACET_URL, or run this where `placet up` keeps .placet/.")


def checked_token(setting: str, token: str) -> str:
    """A token without the white space around it, such as the newline that a file ends with.

    Raises:
        SettingRefused: it is empty, or a character is in it that no header can hold.
    """
    stripped = _filled(setting, token)
    if bad := _NOT_IN_A_HEADER.search(stripped):
        raise SettingRefused(
            setting,
            f"holds a character that no token can hold (number {bad.start() + 1} of {len(stripped)}):"
            " give the one line that `placet token issue` printed.",
        )
    return stripped


def checked_source(token: Callable[[], str]) -> Callable[[], str]:
    """A function that gives tokens, each checked before it is used.

    Returns:
        A function that raises `SettingRefused` where a token cannot be used.
    """

    def checked() -> str:
        return checked_token("What the function given as token= returned", token())

    return checked


def checked_header(setting: str, value: str) -> str:
    """A value that is sent in a header, without the white space around it.

    Raises:
        SettingRefused: it is empty, or a character is in it that no header can hold.
    """
    stripped = _filled(setting, value)
    if _NOT_IN_A_HEADER.search(stripped):
        raise SettingRefused(setting, "holds a character that no header can hold.")
    return stripped


def checked_address(setting: str, url: str) -> str:
    """The address of a gateway, without the slash at its end.

    Raises:
        SettingRefused: it is none or empty, or it holds what belongs elsewhere: a user, a password, a token.
    """
    stripped = _filled(setting, url).rstrip("/")
    refused = SettingRefused(setting, "is no address of a gateway: give http(s)://HOST:PORT.")
    if _NOT_IN_AN_ADDRESS.search(stripped):
        raise refused
    try:
        parts = urlsplit(stripped)
        port = parts.port
        host = (parts.hostname or "").encode("idna")
    except ValueError:
        # Not chained: the reason quotes the value.
        raise refused from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise refused
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise SettingRefused(
            setting,
            "holds more than an address (a user, a password or a query): leave it out, and give the token by"
            " PLACET_TOKEN.",
        )
    return stripped


def shown_address(url: str) -> str:
    """An address as errors show it: scheme, host and port alone, since a path may hold what is secret."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('/', 1)[0].rpartition('@')[2]}"


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
    """Whether `placet up` ran there and does no more; False where something else runs the roles: it is not known."""
    try:
        stack = json.loads((directory / "run" / "stack.json").read_text("utf-8"))
        state, pid = stack["state"], stack["pid"]
        found = directory.stat()
        if stack.get("place") not in (None, [found.st_dev, found.st_ino]):
            # A copy that was made while the stack ran in another directory.
            return True
        if state not in ("stopped", "failed") and _started_ticks(pid) not in (None, stack["started"]):
            return True
    except ProcessLookupError:
        return True
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return False
    return state in ("stopped", "failed")


def _started_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (proc(5), field 22); None where that is not to be known.

    Raises:
        ProcessLookupError: there is none.
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
        # Not chained: what says where the text is wrong quotes it.
        raise NotConfigured(f"{path} can't be read ({why}); set PLACET_TOKEN instead.") from None
    return checked_token(f"The token in {path}", text)
