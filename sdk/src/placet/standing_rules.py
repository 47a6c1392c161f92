"""Standing rules: approvals that are remembered for other runs."""

from __future__ import annotations

from dataclasses import dataclass

from placet import asks
from placet.channel import Channel
from placet.ids import segment
from placet.models import Object, Page, StandingRule
from placet.transport.port import Request


@dataclass(frozen=True)
class AsyncStandingRules:
    """Approvals that are remembered. A rule is made by `holds.decide(…, scope="rule", remember=…)`."""

    channel: Channel

    async def list(self, *, status: str | None = None, cursor: str | None = None) -> Page[StandingRule]:
        """The project's rules, the newest first; of one status: proposed, active, suspended, revoked, refused."""
        return await self.channel.page(
            StandingRule, asks.read("/standing-rules", status=status, cursor=cursor)
        )

    async def get(self, rule_id: str) -> StandingRule:
        """One rule, with the uses that were given so far."""
        return await self.channel.one(StandingRule, asks.read(_path(rule_id)))

    async def activate(self, rule_id: str, reason: str = "") -> StandingRule:
        """Activate a proposed or suspended rule; the policy can require a person other than its maker.

        Raises:
            NotAuthorised: `own_request`, the rule requires a second person.
        """
        return await self._change(rule_id, "activate", reason)

    async def suspend(self, rule_id: str, reason: str = "") -> StandingRule:
        """Suspend a rule until a person activates it."""
        return await self._change(rule_id, "suspend", reason)

    async def revoke(self, rule_id: str, reason: str = "") -> StandingRule:
        """End a rule for good."""
        return await self._change(rule_id, "revoke", reason)

    async def _change(self, rule_id: str, change: str, reason: str) -> StandingRule:
        body: Object = {"reason": reason}
        return await self.channel.one(StandingRule, Request("POST", f"{_path(rule_id)}/{change}", body))


def _path(rule_id: str) -> str:
    return f"/standing-rules/{segment(rule_id)}"
