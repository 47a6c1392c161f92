"""Server-sent events, as far as Placet's stream needs them (WHATWG HTML, 9.2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import httpx

from placet import tracing
from placet.config import shown_address
from placet.errors import QuotaExceeded, is_passing, refusal
from placet.transport.bearer import bearer_headers
from placet.transport.port import ConnectionLost, Patience, TokenSource, json_text, unsendable
from placet.transport.rest import http_client, retry_after

# A gateway says every 15 s that it is there (docs/hitl/frontend-guide.md): after this time the connection is dead.
SILENT_S = 60.0
STREAM = "text/event-stream"


class StreamOver(Exception):
    """The gateway answers that nothing more will come on this stream (204)."""


@dataclass
class SseParser:
    """Turns lines into (event, data, id); an id that came alone has neither event nor data."""

    _event: str = ""
    _data: list[str] = field(default_factory=list)
    _id: str = ""
    _has_new_id: bool = False

    def feed(self, line: str) -> tuple[str, str, str] | None:
        """Process a line; an empty line ends an event."""
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id, self._has_new_id = value, True
        return None

    def _dispatch(self) -> tuple[str, str, str] | None:
        event, data, has_new_id = self._event or "message", "\n".join(self._data), self._has_new_id
        self._event, self._data, self._has_new_id = "", [], False
        if data:
            return event, data, self._id
        return ("", "", self._id) if has_new_id else None


async def sse_events(
    url: str,
    path: str,
    token: TokenSource,
    patience: Patience,
    cursor: str | None = None,
    *,
    method: str = "GET",
    **request: Any,
) -> AsyncGenerator[tuple[str, str, str], None]:
    """The events of one connection, each as kind, data and id; without kind and data for an id that came alone.

    Args:
        url: the gateway's.
        path: the stream's.
        token: the caller's.
        patience: `open_s` bounds the opening.
        cursor: the id of the last event seen.
        method: of the request.
        request: its `params` or `json`.

    Raises:
        ConnectionLost: the connection was not opened or has ended by a fault, it was silent for `SILENT_S`, the
            answer is no stream, or the gateway refuses for now.
        PlacetError: the gateway refuses the request.
        StreamOver: nothing more will come; only for streams that have an end.
    """
    headers = {**bearer_headers(token), "Accept": STREAM}
    if cursor is not None:
        headers["Last-Event-ID"] = cursor
    if trace := tracing.current():
        headers["traceparent"] = trace
    if (body := request.pop("json", None)) is not None:
        text = json_text(body)
        if (refused := unsendable(text)) is not None:
            raise refusal(refused.status, refused.body)
        request["content"] = text.encode()
        headers["Content-Type"] = "application/json"
    parser, is_open = SseParser(), False
    try:
        async with (
            http_client(url, timeout=httpx.Timeout(patience.open_s, read=SILENT_S)) as client,
            client.stream(method, f"{url}{path}", headers=headers, **request) as response,
        ):
            if not response.is_success:
                await response.aread()
                raise _refused(response)
            if response.status_code == httpx.codes.NO_CONTENT:
                raise StreamOver
            _check_is_stream(response)
            is_open = True
            async for line in response.aiter_lines():
                event = parser.feed(line)
                if event is not None:
                    yield event
    except httpx.RequestError as error:
        what = str(error) or type(error).__name__
        raise ConnectionLost(f"{shown_address(url)} is not reachable ({what})", opened=is_open) from error


def _check_is_stream(response: httpx.Response) -> None:
    """Raise `ConnectionLost` for a page: a portal or proxy that answers whatever is asked of it is no gateway."""
    kind = response.headers.get("Content-Type", "")
    if not kind.startswith(STREAM):
        said = kind or "something without a type"
        raise ConnectionLost(f"{shown_address(str(response.url))} answers with {said}, which is no stream")


def _refused(response: httpx.Response) -> Exception:
    """The error for a stream that was not opened; a temporary one only ends this connection."""
    try:
        refused = refusal(response.status_code, response.json())
    except ValueError:
        refused = refusal(response.status_code, response.text)
    if not is_passing(response.status_code):
        return refused
    return ConnectionLost(
        f"{shown_address(str(response.url))} answers {response.status_code} for now",
        retry_after_s=retry_after(response),
        # What the caller can do about a quota is in the refusal; of all else only that it has to wait.
        quota=refused if isinstance(refused, QuotaExceeded) else None,
    )
