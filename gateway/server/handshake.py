"""The handshake of a WebSocket, whose refusals are problem documents."""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import orjson
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from gateway.problems import MEDIA_TYPE, bare_code, bare_document

VERSION = "13"


class Handshake(ServerProtocol):
    """The library's protocol; what it says in plain text is said as every other refusal is."""

    def accept(self, request: Request) -> Response:
        """The answer to a handshake; a refusal names the version that is spoken here (RFC 6455, section 4.4)."""
        found = super().accept(request)
        if found.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            found.headers["Sec-WebSocket-Version"] = VERSION
        return found

    def unreadable(self) -> Response:
        """The answer to what the library reads no handshake in, and says nothing to."""
        found = self.reject(HTTPStatus.BAD_REQUEST, "this is no WebSocket handshake")
        found.headers["Sec-WebSocket-Version"] = VERSION
        return found

    def reject(self, status: HTTPStatus | int, text: str) -> Response:
        """A refusal; the first line of its text is the detail."""
        told = HTTPStatus(status)
        detail = text.partition("\n")[0].removesuffix(".") or told.phrase.lower()
        document: dict[str, Any] = bare_document(told, bare_code(told), detail)
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
