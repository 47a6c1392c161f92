"""Events from the gateway's stream, across its connections."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from placet.client import AsyncPlacet
from placet.consuming.events import LogEvent, Reached, Wanted, agent_in, event_of
from placet.consuming.registry import Registry
from placet.consuming.source import LATEST
from placet.errors import CheckpointRefused, NotFound, Refused
from placet.models import Event
from placet.transport.bearer import Caller
from placet.transport.feed import stream_messages
from placet.transport.port import ConnectionLost, Patience
from placet.transport.retry import Outage

AGENTS_KEPT = 10_000
TOO_MUCH_WAITS = (
    "the gateway ends the stream: too much waits for this program, or for all readers of its subject"
)
NOT_CONTINUED = "the gateway cannot continue from this position: its log is another one, or no longer has it"


class StreamSource:
    """The stream `/v1/events/stream` of one gateway, and later of the one at its address."""

    def __init__(
        self, client: AsyncPlacet, caller: Caller, registry: Registry, patience: Patience, wanted: Wanted
    ) -> None:
        self.url = client.url
        self._client, self._caller, self._registry = client, caller, registry
        self._patience, self._wanted = patience, wanted
        self._agents: OrderedDict[str, str] = OrderedDict()

    async def close(self) -> None:
        """See `Source`."""
        await self._registry.close()
        await self._client.close()

    async def reached(self, start: str, *, follow: bool) -> AsyncGenerator[Sequence[Reached], None]:
        """See `Source`.

        Raises:
            Unauthenticated: the token is not accepted.
            NotAuthorised: it may not read the project's events.
        """
        await self._registry.check_types(self._wanted.types)
        params = {"channels": "events"} if follow else {"channels": "events", "follow": "false"}
        outage = Outage(self._patience)
        cursor = None if start == LATEST else start
        while True:
            source = stream_messages(self.url, self._caller, cursor, self._patience, params)
            try:
                async with aclosing(source) as messages:
                    async for message in messages:
                        if message.type == "resync_required":
                            _check_continues(message)
                            outage.tolerate(ConnectionLost(TOO_MUCH_WAITS), is_served=True)
                            break
                        outage.heard()
                        cursor = message.cursor or cursor
                        if cursor is not None:
                            yield (_reached(message, cursor),)
                        if message.type == "caught_up":
                            return
            except ConnectionLost as lost:
                outage.tolerate(lost)
            except Refused as refused:
                raise _refusal(refused, cursor) from refused
            await outage.pause()

    async def wants(self, event: LogEvent) -> bool:
        """See `Source`."""
        agents = self._wanted.agents
        if agents is not None and (agent := agent_in(event)) is not None:
            self._note(event.execution_id, agent)
        if not self._wanted.fits(event):
            return False
        return agents is None or await self._agent(event.execution_id) in agents

    async def _agent(self, execution_id: str) -> str:
        """The agent of an execution; empty if there is no such execution, as after a command that was refused."""
        if execution_id not in self._agents:
            try:
                found = await self._client.channel.patiently(
                    lambda: self._client.executions.get(execution_id)
                )
                self._note(execution_id, found.agent)
            except NotFound:
                # Not kept: it can be started later.
                return ""
        return self._agents[execution_id]

    def _note(self, execution_id: str, agent: str) -> None:
        self._agents[execution_id] = agent
        if len(self._agents) > AGENTS_KEPT:
            self._agents.popitem(last=False)


def _check_continues(message: Event) -> None:
    """Raise `CheckpointRefused` if what follows the position is gone; a reader that was too slow comes back to it."""
    if message.body.get("reason") == "gone":
        raise CheckpointRefused("gone", NOT_CONTINUED)


def _reached(message: Event, cursor: str) -> Reached:
    return Reached(cursor, event_of(message) if message.type == "event" else None)


def _refusal(refused: Refused, cursor: str | None) -> Exception:
    """The error for a stream that the gateway refuses: it begins with the name of what is invalid."""
    if refused.code == "invalid" and cursor is not None and refused.detail.startswith("Last-Event-ID"):
        return CheckpointRefused("other_log", f"the gateway refuses the position: {refused.detail}")
    return refused
