"""Requests over HTTP: each change has one idempotency key, and is retried under the same key."""

from __future__ import annotations

import math
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from placet.config import NotConfigured, shown_address
from placet.ids import segment
from placet.tls import tls_for
from placet.transport.bearer import bearer_headers
from placet.transport.port import (
    CallKey,
    ConnectionLost,
    Patience,
    Reply,
    Request,
    TokenSource,
    unsendable,
)
from placet.transport.retry import send_retrying

# Proxies give up after 60 s by default; the gateway waits no longer than this, either.
MOST_WAIT_S = 50.0
# Connections of one client: for what is answered at once, and for what waits.
AT_ONCE_MAX, WAITING_MAX = 64, 1_000
# After these errors the request itself was not begun.
_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
UNUSABLE_PROXY = (
    "The environment names a proxy that cannot be used: correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or name the"
    " gateway's host in NO_PROXY."
)


_NO_COOKIES = DefaultCookiePolicy(allowed_domains=[])


def http_client(url: str, **settings: Any) -> httpx.AsyncClient:
    """An HTTP client for requests to an address, with httpx's own settings.

    Raises:
        NotConfigured: a certificate authority, or the environment's proxy, cannot be used.
    """
    try:
        # Without cookies: a client serves several callers, and a proxy's cookie of one is not another's.
        return httpx.AsyncClient(verify=tls_for(url), cookies=CookieJar(_NO_COOKIES), **settings)
    except (ValueError, httpx.InvalidURL):
        # Not chained: the reason can quote the proxy's password.
        raise NotConfigured(UNUSABLE_PROXY) from None


class RestTransport:
    """The `/v1` interface by httpx; without a token, what needs none."""

    def __init__(self, url: str, token: TokenSource | None, patience: Patience | None = None) -> None:
        self._root = url.rstrip("/")
        self._url = f"{self._root}/v1"
        self._token = token
        self._patience = patience or Patience()
        self._opened: dict[int, httpx.AsyncClient] = {}

    def _client(self, request: Request) -> httpx.AsyncClient:
        """The client for a request: those that wait for a person must not hold up others, such as renewals."""
        most = WAITING_MAX if request.waits_s else AT_ONCE_MAX
        # Made when needed, since reading the certificates takes longer than the rest of a start.
        if most not in self._opened:
            limits = httpx.Limits(max_connections=most, max_keepalive_connections=AT_ONCE_MAX)
            self._opened[most] = http_client(self._url, base_url=self._url, limits=limits)
        return self._opened[most]

    async def send(self, request: Request) -> Reply:
        """The gateway's answer; see `Transport.send`."""
        return await send_retrying(self._send_once, request, self._patience)

    async def decision(self, key: CallKey, wait_s: float) -> Reply:
        """Long-poll a call; see `Transport.decision`."""
        return await self.send(read_call(key, min(wait_s, MOST_WAIT_S)))

    async def close(self) -> None:
        """Close the connections."""
        while self._opened:
            await self._opened.popitem()[1].aclose()

    async def _send_once(self, request: Request, timeout_s: float) -> Reply:
        text = request.body_text()
        if text is not None and (refused := unsendable(text)) is not None:
            return refused
        try:
            response = await self._client(request).request(
                request.method,
                f"{self._root}{request.path}" if request.at_root else request.path,
                params=dict(request.params),
                headers=self._headers(request),
                timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, self._patience.open_s)),
                content=None if text is None else text.encode(),
            )
        except httpx.RequestError as error:
            raise _lost(self._url, error) from error
        return Reply(response.status_code, _body(response), retry_after(response))

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {} if self._token is None else bearer_headers(self._token)
        if request.writes and request.ref:
            headers["Idempotency-Key"] = request.ref
        if request.trace:
            headers["traceparent"] = request.trace
        if request.yaml is not None or request.body is not None:
            headers["Content-Type"] = "application/json" if request.yaml is None else "application/yaml"
        return headers


def read_call(key: CallKey, wait_s: float) -> Request:
    """The request that reads a call; it is answered when the call is decided or after `wait_s`."""
    seconds = max(math.ceil(wait_s), 0)
    return Request(
        "GET",
        f"/executions/{segment(key[0])}/tool-calls/{segment(key[1])}",
        params={"wait": str(seconds)} if seconds else {},
        waits_s=float(seconds),
    )


def _lost(url: str, error: httpx.RequestError) -> ConnectionLost:
    """The error of a try without an answer: not connected, or connected without an answer."""
    shown, what = shown_address(url), str(error) or type(error).__name__
    if isinstance(error, _NOT_SENT):
        return ConnectionLost(f"{shown} is not reachable ({what})")
    if isinstance(error, httpx.TimeoutException):
        return ConnectionLost(f"{shown} does not answer", sent=True)
    return ConnectionLost(f"{shown} closed the connection before it answered ({what})", sent=True)


def _body(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        # A proxy's page is not JSON: its text can be shown, and the status decides.
        return response.text


def retry_after(response: httpx.Response) -> float | None:
    """The seconds after which a gateway asks to come back; None if it does not say."""
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else None
