"""Server-sent events, as far as Placet's stream needs them (WHATWG HTML, 9.2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

import httpx

from placet.config import shown_address
from placet.errors import is_passing, refusal
from placet.transport.port import ConnectionLost


@dataclass
class SseParser:
    """Turns lines into (event, data, id)."""

    _event: str = ""
    _data: list[str] = field(default_factory=list)
    _id: str = ""

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
            self._id = value
        return None

    def _dispatch(self) -> tuple[str, str, str] | None:
        event, data = self._event or "message", "\n".join(self._data)
        self._event, self._data = "", []
        return (event, data, self._id) if data else None


async def parse_lines(lines: AsyncIterator[str]) -> AsyncGenerator[tuple[str, str, str], None]:
    """The events in a stream of lines."""
    parser = SseParser()
    async for line in lines:
        event = parser.feed(line)
        if event is not None:
            yield event


def refused(response: httpx.Response) -> Exception:
    """The error for a stream that was not opened; a temporary one only ends this connection."""
    if is_passing(response.status_code):
        return ConnectionLost(f"{shown_address(str(response.url))} answers {response.status_code} for now")
    try:
        return refusal(response.status_code, response.json())
    except ValueError:
        return refusal(response.status_code, response.text)
