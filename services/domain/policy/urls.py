"""`url_host()`: the one host that every client would connect to, or an error."""

import ipaddress
import re
from functools import lru_cache

import idna

MAX_CHARS = 2048
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]+)(?:[/?#].*)?")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\ud800-\udfff]|\s")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@%]+)(?::([0-9]{0,5}))?")
_DISPUTED = re.compile("[\u00df\u03c2\u200c\u200d]")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


class UnreadableUrl(ValueError):
    """Clients could disagree about the host of this URL."""


def url_host(url: str) -> str:
    """The host of an absolute URL, lowercased, in its ASCII form, without port and trailing dot.

    Args:
        url: `scheme://host…`, at most 2,048 characters. User names, percent signs in the host, backslashes,
            spaces, control characters and short or octal IPv4 forms are errors: their purpose is to mislead.

    Returns:
        A host name (`xn--…` for international ones), an IPv4 address, or an IPv6 address without brackets.

    Raises:
        UnreadableUrl: with the reason.
    """
    if not isinstance(url, str) or len(url) > MAX_CHARS:
        raise UnreadableUrl(f"url_host() reads a text of at most {MAX_CHARS} characters")
    if _FORBIDDEN.search(url):
        raise UnreadableUrl("the URL has spaces, control characters or backslashes")
    whole = _URL.fullmatch(url)
    if whole is None:
        raise UnreadableUrl("this is not an absolute URL of the form scheme://host/path")
    authority = _AUTHORITY.fullmatch(whole.group(1))
    if authority is None:
        raise UnreadableUrl(
            "the URL has a user name, a percent sign or brackets where only a host is allowed"
        )
    if int(authority.group(2) or 0) > 65_535:
        raise UnreadableUrl("the URL's port is above 65535")
    return _host(authority.group(1))


def _host(text: str) -> str:
    if text.startswith("["):
        return _ip(text[1:-1], ipaddress.IPv6Address)
    name = _ascii(text)
    labels = name.removesuffix(".").split(".")
    if not all(map(_LABEL.fullmatch, labels)) or len(name) > 253:
        raise UnreadableUrl("the URL's host is not a host name")
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        # Clients read 127.1, 0177.0.0.1 and 2130706433 as addresses, each in its own way.
        return _ip(".".join(labels), ipaddress.IPv4Address)
    return ".".join(labels)


def _ip(text: str, kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address]) -> str:
    try:
        return str(kind(text))
    except ValueError as error:
        raise UnreadableUrl(f"the URL's host is not a plain IP address: {error}") from error


# Of a name with letters beyond ASCII that takes half a millisecond, and one call can have a thousand.
@lru_cache(maxsize=4_096)
def _ascii(host: str) -> str:
    if host.isascii() and "xn--" not in host.lower():
        return host.lower()
    if len(host) > 254:
        # Its ASCII form is even longer, and computing it takes microseconds a character.
        raise UnreadableUrl("the URL's host is not a host name")
    try:
        # Full-width letters, invisible characters and ß are mapped by some clients and not by others.
        if idna.uts46_remap(host) != host.lower() or _DISPUTED.search(host):
            raise UnreadableUrl("the URL's host has characters that clients read differently")
        return idna.encode(host.lower(), std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise UnreadableUrl(f"the URL's host is not a valid international name: {error}") from error
