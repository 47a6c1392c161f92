"""The types that both transports share: a request, its answer, and the time limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from placet.canonical import check_json
from placet.errors import QuotaExceeded, Unreachable, is_passing
from placet.ids import new_id

# The gateway's size limits (docs/doors.md): of a body or message, and of a socket's messages before its token is
# accepted.
MESSAGE_MAX_BYTES = 1024 * 1024
FIRST_MAX_BYTES = 64 * 1024

CallKey = tuple[str, str]
TokenSource = Callable[[], str]


@dataclass(frozen=True)
class Frame:
    """A request's form on the agents' WebSocket: a message type and the ids that it is about.

    `body` is None if it is the same as the REST body.
    """

    type: str
    about: Mapping[str, str]
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Request:
    """One request, for either transport.

    Attributes:
        ref: its idempotency key, which stays the same when the request is sent again; empty for none, where a repeat
            is the same request by its body.
        waits_s: seconds for which the gateway may delay its answer on purpose.
        frame: None if the request exists only in REST.
        yaml: a body in YAML instead of JSON.
        at_root: its path is not below `/v1`.
        trace: the trace context that it carries; empty for none.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    frame: Frame | None = None
    waits_s: float = 0.0
    yaml: str | None = None
    at_root: bool = False
    ref: str = field(default_factory=new_id)
    trace: str = ""

    @property
    def writes(self) -> bool:
        """Returns True if the request changes something, and so has an idempotency key."""
        return self.method != "GET"

    def frame_text(self) -> str:
        """The request's WebSocket message.

        Raises:
            ValueError: it has none.
        """
        if self.frame is None:
            raise ValueError(f"{self.method} {self.path} is not available on the WebSocket")
        body = self.body if self.frame.body is None else self.frame.body
        message = {"type": self.frame.type, "ref": self.ref, **self.frame.about, "body": body or {}}
        if self.trace:
            message["traceparent"] = self.trace
        return json_text(message, body or {})

    def body_text(self) -> str | None:
        """The body of its HTTP request; None if it has none."""
        if self.yaml is not None:
            return self.yaml
        return None if self.body is None else json_text(dict(self.body))


def json_text(message: Mapping[str, Any], fields: Mapping[str, Any] | None = None) -> str:
    """A body or message as it is sent.

    Args:
        message: the whole of it.
        fields: what the caller gave of it. Errors name these; the whole message without it.

    Raises:
        TypeError: a field is not a JSON value.
        ValueError: a field has a number that JSON does not have.
    """
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # Its own messages do not say where in the message the value is.
        for name, value in (message if fields is None else fields).items():
            check_json(value, name)
        raise


@dataclass(frozen=True)
class Reply:
    """An answer: HTTP status, and the resource or the RFC 9457 problem."""

    status: int
    body: Any = None
    retry_after_s: float | None = None

    @property
    def ok(self) -> bool:
        """True if the request was accepted."""
        return 200 <= self.status < 300

    @property
    def comes_back(self) -> bool:
        """True if the same request can be accepted later: see `is_passing`."""
        return is_passing(self.status)


def unsendable(text: str) -> Reply | None:
    """The refusal of a text that every gateway would refuse, so that it is not sent; None if it can be sent.

    A message that is too long would close the connection, with all other requests in flight on it.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return Reply(
            400,
            {"code": "malformed", "detail": "a lone surrogate is not Unicode text: the request was not sent"},
        )
    if size <= MESSAGE_MAX_BYTES:
        return None
    return too_large(
        f"{size:,} bytes are more than the limit of {MESSAGE_MAX_BYTES:,}: the message was not sent"
    )


def too_large(detail: str) -> Reply:
    """The refusal of a request for its size."""
    return Reply(413, {"code": "too_large", "detail": detail})


@dataclass(frozen=True)
class Patience:
    """Time limits of requests and waits, in seconds.

    Attributes:
        request_s: after this time an unanswered or unserved request fails as `Unreachable`.
        answer_s: the same for a request that was sent; `request_s` if that is longer. A request that only reads is
            not sent again in the remaining time.
        open_s: the maximal time to open one connection.
        first_delay_s: the pause before the first retry; it doubles up to `most_delay_s`, each time at random
            between half and whole.
        most_delay_s: the longest pause between two tries.
        subscribe_after_s: after waiting this long for a decision without a push, its channel is subscribed to.
        poll_s: while waiting for a push, the call is read this often, so that a lost push costs no more time.
        outage_s: how long a wait for a person tolerates an unreachable gateway.
    """

    request_s: float = 30.0
    open_s: float = 10.0
    first_delay_s: float = 0.1
    most_delay_s: float = 5.0
    subscribe_after_s: float = 1.0
    poll_s: float = 20.0
    outage_s: float = 600.0
    answer_s: float = 0.0


class ConnectionLost(Unreachable):
    """The connection failed.

    Attributes:
        sent: true if the request may have arrived.
        opened: true if it was a stream that had been opened: however long it was quiet, the gateway was there.
        retry_after_s: the time after which the gateway asked to come back.
        quota: the refusal, if the caller's share is used up.
    """

    def __init__(
        self,
        message: str,
        *,
        sent: bool = False,
        opened: bool = False,
        retry_after_s: float | None = None,
        quota: QuotaExceeded | None = None,
    ) -> None:
        super().__init__(message)
        self.sent = sent
        self.opened = opened
        self.retry_after_s = retry_after_s
        self.quota = quota


class Transport(Protocol):
    """Sends requests and waits for decisions."""

    async def send(self, request: Request) -> Reply:
        """The gateway's answer.

        Raises:
            Unreachable: no answer came within `Patience.request_s`.
        """

    async def decision(self, key: CallKey, wait_s: float) -> Reply:
        """The call once it is decided, or after `wait_s` at the latest.

        Raises:
            Unreachable: the call could not be read.
        """

    async def close(self) -> None:
        """Close every connection."""
