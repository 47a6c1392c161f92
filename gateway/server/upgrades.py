"""Requests that offer to continue in another protocol (`Upgrade`), and which of them are WebSocket handshakes.

The parser ends such a request with its head, even if the head announces a body, and would read the body as the next
request. A server may ignore an offer of anything but a WebSocket (RFC 9110, section 7.8): curl and Java offer HTTP/2
with an ordinary request. The request is then parsed again without the offer.
"""

from __future__ import annotations

from collections.abc import Iterable

Headers = Iterable[tuple[bytes, bytes]]

WEBSOCKET = b"websocket"


def is_handshake(version: str, headers: Headers) -> bool:
    """Return True if a WebSocket is among the offered protocols; a request of HTTP/1.0 offers none.

    Args:
        version: the HTTP version, such as `1.1`.
        headers: the request's headers, with names in lower case.
    """
    if version == "1.0":
        return False
    offers = b",".join(value for name, value in headers if name == b"upgrade").split(b",")
    return WEBSOCKET in (offer.strip(b" \t").lower() for offer in offers)


def has_body(headers: Headers) -> bool:
    """Return True if a head that the parser has accepted announces a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and int(value) > 0)
        for name, value in headers
    )


def without_offer(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """Return the same head as bytes, without the offer."""
    lines = [b"%b %b HTTP/%b" % (method, target, version.encode())]
    lines += [b"%b: %b" % (name, value) for name, value in headers if name != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])
