"""The gateway behind the gRPC role: each call becomes one of its REST requests, with the caller's own token.

So every check, limit and record is the gateway's, and a call is refused as the same REST request would be.
"""

from __future__ import annotations

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
from schemas.trace_context import TRACEPARENT

# Without a deadline of its own, a call waits this long for the gateway, beside the time that it asks to wait.
DEFAULT_S = 15.0
CONNECTIONS_MAX = 2_000


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


class Upstream:
    """Sends requests to a gateway. Close it at the end, also if nothing was served (`contextlib.aclosing`)."""

    def __init__(self, url: str) -> None:
        self._url = url
        # By default no proxy of the environment is used: the gateway belongs to the same installation.
        self._session = _session(CONNECTIONS_MAX)
        # Whatever callers do, the gateway is asked whether it is ready.
        self._readiness = _session(1)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()
        await self._readiness.close()

    async def is_ready(self) -> bool:
        """Return True if the installation can decide: Kafka answers, and every role that it needs works."""
        try:
            async with self._readiness.get(f"{self._url}/readyz", timeout=_within(DEFAULT_S)) as answer:
                return bool(answer.ok)
        except (aiohttp.ClientError, TimeoutError):
            return False

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


def _session(connections: int) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=connections)
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
