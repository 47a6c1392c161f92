"""Trust in agents: how far it goes, what it comes from, and what the policies would make of calls by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.models import Object, Risk
from placet.parsing import UnexpectedAnswer


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
    """The verdict that a call would get now; `risk` has what the history of its values adds to `risk_of_tool`.

    `misfits` are the reasons why the proposal would be refused, `misfit` the first of them: the arguments do not fit
    the tool's inputSchema. `is_published` is False if the project knows no tool of this name.
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
    misfits: tuple[str, ...] = ()
    is_published: bool = True
    risk_of_tool: Risk | None = None
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Assessment:
    """What the policies in force would make of an agent's calls, and the risk of the whole task.

    `is_known` is False if the agent has done nothing in the project: its name may be misspelt.
    """

    agent: str
    requires_approval: bool
    risk: Risk
    calls: tuple[AssessedCall, ...]
    at: datetime | None = None
    is_known: bool = True
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class AsyncTrust:
    """Trust in the agents of the project; a token that may read the project can ask."""

    channel: Channel

    async def classes(
        self,
        agent: str,
        *,
        tool: str | None = None,
        at: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Object:
        """The trust in an agent by classes of its calls; with a tool, the facts behind each, also as of a time.

        Args:
            agent: whose calls.
            tool: only the classes of this tool, each with its facts.
            at: an RFC 3339 time, as of which trust is computed.
            limit: at most so many classes, and `next_cursor` for the others; without it all, of as many pages as
                there are.
            cursor: the `next_cursor` of the page before; give its `at`, too, so that both are of one moment.

        Raises:
            NotFound: the project has no such agent.
        """

        async def page(at: str | None, cursor: str | None) -> tuple[Object, list[Any]]:
            path = asks.trust_path(agent)
            request = asks.read(path, tool=tool, at=at, limit=limit, cursor=cursor)
            answer = await self.channel.ask(request)
            if not isinstance(answer, Mapping) or not isinstance(answer.get("classes"), list):
                raise UnexpectedAnswer("expected a list of classes")
            return answer, answer["classes"]

        first, classes = await page(at, cursor)
        following = first.get("next_cursor")
        if limit is not None or following is None:
            return first
        while following not in (None, cursor):
            cursor = following
            found, more = await page(first.get("at"), cursor)
            classes, following = [*classes, *more], found.get("next_cursor")
        return {**first, "classes": classes, "next_cursor": None}

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
