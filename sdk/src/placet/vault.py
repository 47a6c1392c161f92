"""Sensitive values: erasing them, and the keys that seal a tenant's values."""

from __future__ import annotations

from dataclasses import dataclass

from placet import asks
from placet.channel import Channel
from placet.models import Object, Page


@dataclass(frozen=True)
class AsyncVault:
    """What an operator can do with sensitive values: erase them, but never read them."""

    channel: Channel

    async def erase_call(self, execution_id: str, call_id: str, *, reason: str = "") -> Object:
        """Erase the sensitive arguments of a call; `erased` is their number."""
        found: Object = await self.channel.ask(asks.erase_call(execution_id, call_id, reason))
        return found

    async def erase_request(
        self, request_id: str, *, execution_id: str | None = None, reason: str = ""
    ) -> Object:
        """Erase the answer to an env_var request; several executions may have one of this id: name one."""
        found: Object = await self.channel.ask(asks.erase_request(request_id, execution_id, reason))
        return found

    async def keys(self) -> Page[Object]:
        """The tenant's data keys, oldest first; new values are sealed under the last."""
        return await self.channel.objects(asks.read("/data-keys"))

    async def destroy_key(self, name: str, *, reason: str = "") -> Object:
        """Destroy a data key: everything that was sealed under it is erased, in every copy of the vault."""
        found: Object = await self.channel.ask(asks.destroy_key(name, reason))
        return found
