"""Trust in agents: how far it goes, what it comes from, and what the policies would make of calls by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.models import Object, Risk


@dataclass(frozen=True)
class WeighedTrust:
    """What an adaptive block says of a call that a rule holds: eligible, or `why` people are asked.

    `lower_bound` of the trust must reach `required` and `floor`; None: people are always asked.
    """

    is_eligible: bool
    why: str = ""
    lower_bound: float | None = None
    required: float = 1.0
    floor: float | None = None
    sample_rate: float = 1.0


@dataclass(frozen=True)
class AssessedCall:
    """The verdict that a call would get now; `risk` has what the history of its values adds.

    `misfit` is the reason why the proposal would be refused: the arguments do not fit the tool's inputSchema.
    """

    tool: str
    requires_approval: bool
    effect: str
    risk: Risk
    reason: str = ""
    detail: str = ""
    rules: tuple[str, ...] = ()
    adaptive: WeighedTrust | None = None
    trust: Any = field(default=None, hash=False)
    history: Any = field(default=None, hash=False)
    policy_version: str | None = None
    misfit: str | None = None
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Assessment:
    """What the policies in force would make of an agent's calls, and the risk of the whole task."""

    agent: str
    requires_approval: bool
    risk: Risk
    calls: tuple[AssessedCall, ...]
    at: datetime | None = None
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class AsyncTrust:
    """Trust in the agents of the project; a token that may read the project can ask."""

    channel: Channel

    async def classes(self, agent: str, *, tool: str | None = None, at: str | None = None) -> Object:
        """The trust in an agent by classes of its calls; with a tool, the facts behind each, also as of a time."""
        found: Object = await self.channel.ask(asks.read(asks.trust_path(agent), tool=tool, at=at))
        return found

    async def assess(
        self,
        agent: str,
        calls: Sequence[Mapping[str, Any]] = (),
        *,
        tools: Sequence[str] = (),
        task_description: str = "",
        user: str | None = None,
        workspace: str | None = None,
        request: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> Assessment:
        """What the policies in force would make of calls, before anyone proposes them; nothing is decided by it.

        Args:
            agent: who would propose them.
            calls: {tool, arguments, annotations} each, the last two may be left out; at most 50.
            tools: those that the task may use beside its calls. Without either, it may use every published tool.
            task_description: can only raise the risk of the task.
            user: the user of the run that would propose them, as for `executions.start`.
            workspace: its workspace.
            request: what it would be asked for.
            context: its context.
        """
        body = {"calls": list(calls), "tools": list(tools), "task_description": task_description}
        of_run = {"user": user, "workspace": workspace, "request": request, "context": context}
        return await self.channel.one(Assessment, asks.assess(agent, body, of_run))
