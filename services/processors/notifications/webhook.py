"""Messages to an address over HTTP, signed so that the receiver can verify the sender.

The scheme is Standard Webhooks 1.0 (https://www.standardwebhooks.com): HMAC-SHA256 with the endpoint's own secret
over `{id}.{timestamp}.{body}`; the id is the same at each try, the time is that of the try.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import math
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime

import httpx

from host.outgoing_tls import TlsRefused, outgoing_tls
from services.processors.notifications.channel import Undelivered
from services.processors.notifications.render import RenderedMessage

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of secrets
SECRET_MIN_BYTES, SECRET_MAX_BYTES = 24, 64
TIMEOUT, TOO_MANY = 408, 429
USER_AGENT = "placet-notifier"


class BadSecret(ValueError):
    """A webhook's secret cannot be used; the message says why and does not show it."""


def read_secret(text: str) -> bytes:
    """The key in a secret as Standard Webhooks writes it: `whsec_` and base64 of 24 to 64 bytes.

    Raises:
        BadSecret: it is not a valid secret.
    """
    encoded = text.strip().removeprefix(SECRET_PREFIX)
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise BadSecret(f"a secret is {SECRET_PREFIX} followed by base64") from None
    if not SECRET_MIN_BYTES <= len(key) <= SECRET_MAX_BYTES:
        raise BadSecret(
            f"a secret has {SECRET_MIN_BYTES} to {SECRET_MAX_BYTES} random bytes after {SECRET_PREFIX}, in base64"
        )
    return key


def sign(key: bytes, message_id: str, timestamp_s: int, body: bytes) -> str:
    """The signature of a message, in the form of its header."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp_s, body)
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


@dataclass(slots=True)
class WebhookChannel:
    """Posts to one address only: redirects are not followed, and no proxy or password file is used."""

    url: str = field(repr=False)
    key: bytes = field(repr=False)
    timeout_s: float
    now_s: Callable[[], float] = time.time
    _tls: ssl.SSLContext | None = field(default=None, init=False, repr=False)

    @property
    def kind(self) -> str:
        """See `Channel`."""
        return "webhook"

    async def send(self, outgoing: RenderedMessage) -> None:
        """See `Channel`. Only the status of the answer and its Retry-After are read."""
        body = json.dumps(outgoing.document, ensure_ascii=False, separators=(",", ":")).encode()
        headers = self._headers(outgoing.id, body)
        try:
            async with (
                asyncio.timeout(self.timeout_s),
                self._client() as client,
                client.stream("POST", self.url, content=body, headers=headers) as answer,
            ):
                status, retry_after = answer.status_code, answer.headers.get("retry-after")
        except TimeoutError:
            raise Undelivered(f"no answer within {self.timeout_s:g} s") from None
        except TlsRefused as error:
            raise Undelivered(str(error)) from None
        except httpx.ConnectError as error:
            raise Undelivered(_connection_failure(error)) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            # From None: httpx's errors contain the address.
            raise Undelivered(type(error).__name__) from None
        if not 200 <= status < 300:
            is_final = 400 <= status < 500 and status not in (TIMEOUT, TOO_MANY)
            raise Undelivered(
                f"HTTP {status}", is_final=is_final, retry_after_s=read_retry_after(retry_after, self.now_s())
            )

    def _client(self) -> httpx.AsyncClient:
        if self._tls is None:
            self._tls = outgoing_tls()
        return httpx.AsyncClient(
            verify=self._tls, timeout=self.timeout_s, trust_env=False, follow_redirects=False
        )

    def _headers(self, message_id: str, body: bytes) -> Mapping[str, str]:
        timestamp_s = int(self.now_s())
        return {
            "content-type": "application/json",
            "user-agent": USER_AGENT,
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": sign(self.key, message_id, timestamp_s, body),
        }


def _connection_failure(error: httpx.ConnectError) -> str:
    """The reason for a failed connection. Only OpenSSL's own message is shown: the rest contains the address."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"ConnectError: the certificate is not trusted ({cause.verify_message})"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def read_retry_after(text: str | None, now_s: float) -> float | None:
    """Seconds until the next try is welcome (RFC 9110, 10.2.3); None if the header cannot be read."""
    if text is None:
        return None
    if text.strip().isascii() and text.strip().isdigit() and len(text) < 10:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at_s = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return max(0.0, math.ceil(at_s - now_s))
