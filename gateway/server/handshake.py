"""The WebSocket handshake, whose refusals are problem documents."""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import orjson
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from gateway.problems import MEDIA_TYPE, bare_document

VERSION = "13"


class Handshake(ServerProtocol):
    """The library's protocol, with problem documents in place of its plain-text refusals."""

    def accept(self, request: Request) -> Response:
        """Return the answer to a handshake; a refusal names the supported version (RFC 6455, section 4.4)."""
        found = super().accept(request)
        if found.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            found.headers["Sec-WebSocket-Version"] = VERSION
        return found

    def unreadable(self) -> Response:
        """Return the answer to bytes that the library cannot parse as a handshake, and does not answer itself."""
        found = self.reject(HTTPStatus.BAD_REQUEST, "this is not a WebSocket handshake")
        found.headers["Sec-WebSocket-Version"] = VERSION
        return found

    def reject(self, status: HTTPStatus | int, text: str) -> Response:
        """Return a refusal; the first line of its text is the detail."""
        told = HTTPStatus(status)
        detail = text.partition("\n")[0].removesuffix(".") or told.phrase.lower()
        document: dict[str, Any] = bare_document(told, detail)
        body = orjson.dumps(document)
        headers = Headers(
            [
                ("Date", formatdate(usegmt=True)),
                ("Connection", "close"),
                ("Content-Length", str(len(body))),
                ("Content-Type", MEDIA_TYPE),
                ("X-Content-Type-Options", "nosniff"),
            ]
        )
        return Response(told.value, told.phrase, headers, body)
