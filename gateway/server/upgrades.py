"""Requests that offer to go on in another protocol (`Upgrade`), and which of them is a WebSocket's handshake.

The parser ends such a request with its head, whatever it says of a body, and would read the body as the next request.
An offer of anything but a WebSocket is one that a server may pass over (RFC 9110, section 7.8): curl and Java offer
HTTP/2 beside an ordinary request. It is then read again as if it had not been made.
"""

from __future__ import annotations

from collections.abc import Iterable

Headers = Iterable[tuple[bytes, bytes]]

WEBSOCKET = b"websocket"


def is_handshake(version: str, headers: Headers) -> bool:
    """Whether a WebSocket is among what is offered; one of HTTP/1.0 offers nothing.

    Args:
        version: of HTTP, as `1.1`.
        headers: of the request, their names in lower case.
    """
    if version == "1.0":
        return False
    offers = b",".join(value for name, value in headers if name == b"upgrade").split(b",")
    return WEBSOCKET in (offer.strip(b" \t").lower() for offer in offers)


def has_body(headers: Headers) -> bool:
    """Whether a head that the parser has taken says that a body follows."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and int(value) > 0)
        for name, value in headers
    )


def without_offer(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """The same head as bytes, with nothing offered."""
    lines = [b"%b %b HTTP/%b" % (method, target, version.encode())]
    lines += [b"%b: %b" % (name, value) for name, value in headers if name != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])
