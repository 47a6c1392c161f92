"""Planted calls: known-bad calls by which an operator sees whether people notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.models import Object, Page


@dataclass(frozen=True)
class ProbeAnswer:
    """What one person answered to a planted call; `caught` if the call would not have run as it was planted."""

    by: str
    decision: str
    caught: bool
    person: str = ""


@dataclass(frozen=True)
class Probe:
    """A planted call; it never runs. `result` is caught, missed, expired or cancelled, and empty until people answer.

    `wrong` are the places in its arguments (JSON Pointers) that an edit must change; empty if no edit makes it right.
    """

    execution_id: str
    call_id: str
    agent: str
    tool: str
    planted_by: str
    note: str = ""
    hold_id: str = ""
    arguments: Object = field(default_factory=dict, hash=False)
    wrong: tuple[str, ...] = ()
    result: str = ""
    answers: tuple[ProbeAnswer, ...] = ()
    planted_at: datetime | None = None
    ended_at: datetime | None = None
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class AsyncProbes:
    """Planted calls. Only an operator plants one; analysts can list them, too."""

    channel: Channel

    async def plant(
        self,
        agent: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        note: str,
        wrong: Sequence[str] = (),
        requester: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
        request: Any = None,
        reason: str | None = None,
        context: Mapping[str, Any] | None = None,
        execution_id: str | None = None,
        call_id: str | None = None,
    ) -> Probe:
        """Plant a call that people should not approve; it is refused if nobody would be asked about it.

        Args:
            agent: whose call it appears to be.
            tool: the tool that it appears to call.
            arguments: its arguments.
            note: what is bad about it: told to those who have answered.
            wrong: JSON Pointers such as `/to`, the places that an edit must change to make the call right.
            requester: the account that appears to propose it; by default the agent's name.
            user: the user of the run that it appears to be in, as for `executions.start`.
            workspace: its workspace.
            request: what it appears to be asked for.
            reason: the agent's apparent reason for the call.
            context: the call's context.
            execution_id: the new run's id, if the agent's runs have chosen ones; by default a fresh one.
            call_id: the call's.
        """
        body = {
            "agent": agent,
            "tool": tool,
            "arguments": dict(arguments),
            "note": note,
            "wrong": list(wrong),
        }
        seems = {
            "requester": requester,
            "user": user,
            "workspace": workspace,
            "request": request,
            "reason": reason,
            "context": context,
            "execution_id": execution_id,
            "call_id": call_id,
        }
        return await self.channel.one(Probe, asks.plant_probe(body, seems))

    async def list(self, *, cursor: str | None = None) -> Page[Probe]:
        """The planted calls of the project, the newest first, also those that wait for an answer."""
        return await self.channel.page(Probe, asks.read("/probes", cursor=cursor))
