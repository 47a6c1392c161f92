"""The gateway behind the gRPC role: each call becomes one of its REST requests, with the caller's own token.

So every check, limit and record is the gateway's, and a call is refused as the same REST request would be.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import aiohttp
import grpc
import orjson
from yarl import URL

from gateway.problems import renamed
from gateway.rpc.metadata import Context, passed_on
from gateway.rpc.statuses import CODE, status_of, trailing
from gateway.rpc.tracing import trace_to_continue
from host.errors import SettingsRefused, on_one_line
from host.outgoing_tls import TlsRefused, tls_for
from schemas.refusals import Refusal
from schemas.trace_context import TRACEPARENT

logger = logging.getLogger(__name__)

# Without a deadline of its own, a call waits this long for the gateway, beside the time that it asks to wait.
DEFAULT_S = 15.0
CONNECTIONS_MAX = 2_000
# The roles of an installation start in any order, and need so long at most to be ready.
TOLD_AFTER_S = 3.0


class Refused(Exception):
    """The gateway refused a request, or did not answer it.

    Attributes:
        code: the gRPC status.
        metadata: its trailing metadata.
    """

    def __init__(self, code: grpc.StatusCode, detail: str, metadata: tuple[tuple[str, str], ...]) -> None:
        super().__init__(detail)
        self.code = code
        self.metadata = metadata

    def says(self, refusal: Refusal) -> bool:
        """Return True if the gateway refused it by this code."""
        return (CODE, str(refusal)) in self.metadata


class Upstream:
    """Sends requests to a gateway. Close it at the end, also if nothing was served (`contextlib.aclosing`)."""

    def __init__(self, url: str, told_after_s: float = TOLD_AFTER_S) -> None:
        """Send requests to a gateway.

        Args:
            url: its address, also with a slash at the end.
            told_after_s: how long it must not have been ready before the log says why.

        Raises:
            SettingsRefused: the address is one of TLS, and a file of certificate authorities cannot be used.
        """
        self._url = url.rstrip("/")
        tls = _tls_for(self._url)
        # By default no proxy of the environment is used: the gateway belongs to the same installation.
        self._session = _session(CONNECTIONS_MAX, tls)
        # Whatever callers do, the gateway is asked whether it is ready.
        self._readiness = _session(1, tls)
        self._reasons = _Reasons(told_after_s)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()
        await self._readiness.close()

    async def is_ready(self) -> bool:
        """Return True if the installation can decide: Kafka answers, and every role that it needs works."""
        try:
            async with self._readiness.get(f"{self._url}/readyz", timeout=_within(DEFAULT_S)) as answer:
                return self._reasons.is_ready(None if answer.ok else f"HTTP status {answer.status}")
        except (aiohttp.ClientError, TimeoutError) as error:
            return self._reasons.is_ready(f"{type(error).__name__}: {on_one_line(str(error))}")

    async def ask(
        self,
        context: Context,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        wait_s: float = 0.0,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        """Send one request on behalf of a caller, and return the answer's JSON.

        Args:
            context: the call; its metadata has the token, and its deadline ends the request.
            method: of HTTP.
            path: with the query.
            body: JSON.
            wait_s: how long the gateway may wait before it answers.
            names: what the caller calls the fields that a refusal can begin with; see `renamed`.

        Raises:
            Refused: the gateway refused it, or did not answer in time.
            Problem: the call's metadata is not that of any request.
        """
        headers, content = passed_on(context), None
        if trace := trace_to_continue(context):
            headers[TRACEPARENT] = trace
        if body is not None:
            headers["content-type"], content = "application/json", orjson.dumps(body)
        try:
            async with self._request(
                method, path, DEFAULT_S + wait_s, headers=headers, data=content
            ) as answer:
                return _read(answer.status, await answer.read(), names)
        except (aiohttp.ClientError, TimeoutError) as error:
            detail = f"unavailable: the gateway does not answer ({type(error).__name__})"
            raise Refused(grpc.StatusCode.UNAVAILABLE, detail, ((CODE, "unavailable"),)) from error

    def _request(self, method: str, path: str, within_s: float, **more: Any) -> Any:
        # The path is quoted already, and sent as it is: `..` in an id is not another path.
        url = URL(f"{self._url}{path}", encoded=True)
        return self._session.request(method, url, timeout=_within(within_s), allow_redirects=False, **more)


class _Reasons:
    """Writes to the log why the gateway is not ready: the first reason, and each other one that replaces it."""

    def __init__(self, told_after_s: float) -> None:
        self._told_after_s = told_after_s
        self._since: float | None = None
        self._told = ""

    def is_ready(self, reason: str | None) -> bool:
        """Take the result of asking once; None for a gateway that is ready. Returns True if it is."""
        if reason is None:
            if self._told:
                logger.info("the gateway is ready")
            self._since, self._told = None, ""
            return True
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if reason != self._told and now - self._since >= self._told_after_s:
            logger.warning("the gateway is not ready, so no health check says SERVING: %s", reason)
            self._told = reason
        return False


def _tls_for(url: str) -> ssl.SSLContext:
    try:
        return tls_for(url)
    except TlsRefused as error:
        raise SettingsRefused(f"{error}.") from error


def _session(connections: int, tls: ssl.SSLContext) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=connections, ssl=tls)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def _within(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)


def _read(http_status: int, content: bytes, names: Mapping[str, str]) -> Any:
    try:
        read = orjson.loads(content)
    except ValueError:
        read = {}
    if http_status < 300:
        return read
    read = renamed(read, names)
    code, detail = str(read.get("code", "")), str(read.get("detail", ""))
    status = status_of(code, http_status)
    raise Refused(status, f"{code}: {detail}" if code else f"HTTP {http_status}", trailing(read))
