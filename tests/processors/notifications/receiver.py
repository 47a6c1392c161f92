"""Whoever takes messages, in the test's own process: an HTTP server that verifies, and an SMTP server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller

from ops.ports import free_port
from tests.servers.threaded import serving

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
TOLERANCE_S = 300


@dataclass
class Taken:
    """A request that came."""

    id: str
    body: dict[str, Any]
    status: int
    at_s: float
    headers: dict[str, str]
    raw: bytes


@dataclass
class Receiver:
    """Answers with what `answer` says, by the number of the request from 0 on; 204 by default."""

    answer: Callable[[int], tuple[int, dict[str, str]]] = lambda _number: (204, {})
    requests: list[Taken] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    forged: list[str] = field(default_factory=list)
    port: int = 0
    long_body: bytes = b""
    hung_up: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks"

    @property
    def taken(self) -> list[Taken]:
        """What was taken, each id once."""
        return list({found.id: found for found in self.requests if found.status < 300}.values())

    def types(self) -> list[tuple[str, str]]:
        return [(found.body["type"], found.body.get("hold_id", "")) for found in self.taken]

    def handle(self, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str]]:
        """Verify as the specification of Standard Webhooks says, then answer."""
        if not verifies(headers, body):
            self.forged.append(headers.get("webhook-id", ""))
            return 401, {}
        status, extra = self.answer(len(self.requests))
        self.requests.append(
            Taken(headers["webhook-id"], json.loads(body), status, time.time(), headers, body)
        )
        return status, extra


def verifies(headers: dict[str, str], body: bytes, secret: str = SECRET, now_s: float | None = None) -> bool:
    """Whether a message is authentic and fresh; written from the specification, not from our signing."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message_id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not stamp.isdigit() or abs((time.time() if now_s is None else now_s) - int(stamp)) > TOLERANCE_S:
        return False
    wanted = hmac.digest(key, f"{message_id}.{stamp}.".encode() + body, hashlib.sha256)
    return any(
        version == "v1" and hmac.compare_digest(base64.b64decode(text), wanted)
        for version, _, text in (one.partition(",") for one in headers.get("webhook-signature", "").split())
    )


@contextmanager
def receiving(receiver: Receiver | None = None, port: int = 0) -> Iterator[Receiver]:
    """A receiver that listens; afterwards nothing listens on its port."""
    found = receiver or Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.paths.append(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, extra = found.handle({name.lower(): text for name, text in self.headers.items()}, body)
            self.send_response(status)
            for name, text in extra.items():
                self.send_header(name, text)
            self.send_header("content-length", str(len(found.long_body)))
            self.end_headers()
            try:
                self.wfile.write(found.long_body)
            except (BrokenPipeError, ConnectionResetError):
                found.hung_up.set()

        def log_message(self, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    found.port = server.server_port
    with serving(server):
        yield found


class Mailbox:
    """Keeps what an SMTP server is given; refuses the first few."""

    def __init__(self, refuse: int = 0) -> None:
        self.mails: list[EmailMessage] = []
        self.refused = 0
        self._refuse = refuse

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refused < self._refuse:
            self.refused += 1
            return "451 not now"
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return "250 OK"


@contextmanager
def mail_server(mailbox: Mailbox) -> Iterator[str]:
    """An SMTP server; its value is an address for apprise."""
    port = free_port()
    controller = Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield f"mailto://127.0.0.1:{port}?from=placet@example.com&to=ann@example.com&mode=insecure"
    finally:
        controller.stop()
