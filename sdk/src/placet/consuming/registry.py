"""The schemas of the log's records, by their ids, from the gateway or from another registry of Confluent's API."""

from __future__ import annotations

from typing import Any

from placet.channel import answered
from placet.errors import NotFound, Refused
from placet.ids import segment
from placet.parsing import UnexpectedAnswer
from placet.transport.port import Request
from placet.transport.rest import RestTransport

EVENTS = "placet.events."


class Registry:
    """Reads a schema registry; what it answers is kept by its callers."""

    def __init__(self, transport: RestTransport) -> None:
        self._transport = transport

    async def check_types(self, types: frozenset[str] | None) -> None:
        """Refuse event types that do not exist: nothing would be delivered, as if nothing had happened.

        Where a proxy serves only `/v1`, their names are unknown and none is refused.

        Raises:
            ValueError: there is no such type.
            Unreachable: the registry does not answer.
        """
        if types is None:
            return
        try:
            subjects = await self._read("/subjects")
        except NotFound:
            return
        known = {str(name).removeprefix(EVENTS) for name in subjects if str(name).startswith(EVENTS)}
        if unknown := sorted(types - known):
            raise ValueError(f"there is no event type {unknown[0]!r}; choose of {', '.join(sorted(known))}")

    async def schema(self, number: int) -> str | None:
        """The text of a schema; None if the registry does not have it.

        Raises:
            Unreachable: the registry does not answer.
        """
        try:
            return _text(await self._read(f"/schemas/ids/{number}"))
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    async def newest(self, subject: str) -> str:
        """The text of the newest schema of a subject; errors as `schema`."""
        return _text(await self._read(f"/subjects/{segment(subject)}/versions/latest"))

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _read(self, path: str) -> Any:
        return answered(await self._transport.send(Request("GET", path, at_root=True)))


def _text(answer: Any) -> str:
    found = answer.get("schema") if isinstance(answer, dict) else None
    if not isinstance(found, str):
        raise UnexpectedAnswer("a registry's answer has no schema")
    return found
