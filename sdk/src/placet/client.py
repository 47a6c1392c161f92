"""The asynchronous client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from placet import asks, clock, tracing
from placet.agents import REGISTERED, asynchronous
from placet.canonical import check_json
from placet.channel import Channel
from placet.chat import AsyncConversations
from placet.config import checked_source, find_config, find_url
from placet.execution import AsyncExecution
from placet.human_requests import AsyncRequests
from placet.ids import attempt_id as new_attempt_id
from placet.ids import new_id
from placet.lease import consumed
from placet.models import AuditRow, Component, Event, Object, Page, ToolCall
from placet.probes import AsyncProbes
from placet.proposing import proposed
from placet.resources import (
    AsyncExecutions,
    AsyncHolds,
    AsyncPolicies,
    AsyncPrincipals,
    AsyncTools,
)
from placet.standing_rules import AsyncStandingRules
from placet.transport.auto import AutoTransport, Mode
from placet.transport.bearer import Caller, named_project
from placet.transport.port import Patience
from placet.trust import AsyncTrust
from placet.turn import AgentFunction
from placet.vault import AsyncVault


class AsyncPlacet:
    """A client of one gateway, for one event loop.

    Args:
        url: of the gateway; by default `PLACET_URL`, else what `placet up` left in `.placet/`.
        token: the bearer token, or a function that gives a fresh one; by default `PLACET_TOKEN`.
        agent: the name under which executions are started.
        transport: `auto` (the WebSocket, or REST if it is not available), `ws` or `rest`.
        patience: how long to try.
        project: the project, for a token of the whole tenant; by default `PLACET_PROJECT`, else the token's own.

    Raises:
        NotConfigured: no gateway or no token is given.
        SettingRefused: one of them cannot be used, or is empty; the message never shows it.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | Callable[[], str] | None = None,
        agent: str | None = None,
        transport: Mode = "auto",
        patience: Patience | None = None,
        project: str | None = None,
    ) -> None:
        source: Callable[[], str]
        if callable(token):
            self.url, source = find_url(url), checked_source(token)
        else:
            config = find_config(url, token)
            self.url, source = config.url, lambda: config.token
        # Refused now if a header cannot contain it.
        self._token = Caller(source, named_project(project))
        self.agent = agent
        self._mode: Mode = transport
        self._patience = patience or Patience()
        self._transport = AutoTransport(self.url, self._token, self._patience, transport)
        self.channel = Channel(self._transport, self._patience)
        self.executions = AsyncExecutions(self.channel, agent)
        self.holds = AsyncHolds(self.channel)
        self.requests = AsyncRequests(self.channel, agent)
        self.policies = AsyncPolicies(self.channel)
        self.tools = AsyncTools(self.channel)
        self.principals = AsyncPrincipals(self.channel)
        self.standing_rules = AsyncStandingRules(self.channel)
        self.trust = AsyncTrust(self.channel)
        self.probes = AsyncProbes(self.channel)
        self.vault = AsyncVault(self.channel)
        self.conversations = AsyncConversations(self.channel, self.url, self._token, self._patience, agent)

    async def __aenter__(self) -> AsyncPlacet:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    def execution(
        self,
        id: str | None = None,  # noqa: A002 - the interface's word
        *,
        user: str | None = None,
        workspace: str | None = None,
        request: Any = None,
        context: Object | None = None,
    ) -> AsyncExecution:
        """A run of the agent as a block of code; with an `id`, resumable after a crash."""
        start = {"user": user, "workspace": workspace, "request": request, "context": context}
        return AsyncExecution(self.channel, self.agent, id, start)

    async def serve(
        self,
        agents: Mapping[str, AgentFunction] | None = None,
        *,
        concurrency: int = 16,
        wait_s: float | None = None,
    ) -> None:
        """Answer the messages to agents, until cancelled.

        Args:
            agents: the functions by the agents' names; by default those registered with `@placet.agent`.
            concurrency: how many turns run at once.
            wait_s: for how long a turn waits for a person, who answers a question or decides on a held call, before
                it is given back until then; None waits as long as the question or hold does. A gated function's own
                `timeout_s` goes before.

        Raises:
            Refused: the token may not act for one of the agents.
            TypeError: a function is not an `async def`.
            ValueError: no agent is registered.
        """
        from placet.worker import Worker

        functions = asynchronous(REGISTERED if agents is None else agents)
        self.channel.threads.at_least(concurrency)
        worker = Worker(
            self.channel, functions, concurrency=concurrency, wait_s=wait_s, patience=self._patience
        )
        await worker.serve()

    async def propose(
        self,
        execution_id: str,
        tool: str,
        arguments: Object,
        *,
        call_id: str | None = None,
        annotations: Object | None = None,
        context: Object | None = None,
        reason: str = "",
        wait_s: float | None = None,
        attempt_id: str | None = None,
    ) -> ToolCall:
        """Propose a call; the answer comes with its verdict.

        With an `attempt_id`, random and made only for this run, a call that the policy releases is consumed by
        that attempt at once: the answer's `consumed` is then the permission to run it, and no `consume` follows.
        Over REST the answer waits up to `wait_s` for a person's decision. A WebSocket answers as soon as it is held,
        and pushes the decision, which `wait` returns.

        Raises:
            Refused: `id_reused` if the id belongs to another proposal; `already_consumed` if another attempt
                runs the call.
            NotReleased: the answer came too late to be a permission to run.
        """
        check_json(arguments, "arguments")
        given = {
            "context": context,
            "reason": reason,
            "annotations": annotations,
            "attempt_id": attempt_id,
        }
        body = {"call_id": call_id or new_id(), "tool": tool, "arguments": arguments}
        body.update({name: value for name, value in given.items() if value})
        asked_at = clock.now()
        with tracing.span("placet.propose", tracing.facts_of_call(execution_id, str(body["call_id"]), tool)):
            call = await proposed(self.channel, execution_id, body, wait_s)
        if attempt_id is not None and call.status == "consumed":
            await self._confirmed(call, attempt_id, asked_at)
        return call

    async def _confirmed(self, call: ToolCall, attempt_id: str, asked_at: float) -> None:
        """Accept an answer as permission to run only if it is this attempt's, and came in time."""

        async def answered() -> Object:
            return call.raw

        heartbeat = asks.heartbeat(call.execution_id, call.call_id, attempt_id)
        await consumed(answered, lambda: self.channel.ask(heartbeat), attempt_id, asked_at)

    async def call(
        self, execution_id: str, call_id: str, *, wait_s: float | None = None, after: str | None = None
    ) -> ToolCall:
        """The current state of a call."""
        return await self.channel.one(ToolCall, asks.get_call(execution_id, call_id, wait_s, after))

    async def wait(self, execution_id: str, call_id: str, *, timeout_s: float | None = None) -> ToolCall:
        """Wait for a call's decision, pushed if the transport can.

        Raises:
            StillHeld: there was no decision within `timeout_s`.
        """
        found = await self.channel.patiently(lambda: self.call(execution_id, call_id), timeout_s)
        return await self.channel.decided(found, timeout_s)

    async def consume(
        self, execution_id: str, call_id: str, digest: str, *, attempt_id: str | None = None
    ) -> str:
        """Consume a grant, once.

        Returns:
            The attempt id to report the result under.

        Raises:
            AlreadyConsumed: another attempt has consumed it.
            DigestMismatch: the release is for something else.
            NotReleased: there is none, or no longer.
        """
        attempt = attempt_id or new_attempt_id()
        await consumed(
            lambda: self.channel.ask(asks.consume(execution_id, call_id, digest, attempt)),
            lambda: self.channel.ask(asks.heartbeat(execution_id, call_id, attempt)),
            attempt,
        )
        return attempt

    async def heartbeat(self, execution_id: str, call_id: str, attempt_id: str) -> ToolCall:
        """Renew an attempt's lease: once half of `lease_seconds` has passed, and again each time.

        Gated functions do this by themselves.

        Raises:
            NotReleased: the lease has ended, or the call has.
            AlreadyConsumed: another attempt holds the call.
        """
        return await self.channel.one(ToolCall, asks.heartbeat(execution_id, call_id, attempt_id))

    async def result(
        self,
        execution_id: str,
        call_id: str,
        attempt_id: str,
        outcome: str,
        *,
        output: Any = None,
        error: str = "",
        duration_ms: int = 0,
    ) -> ToolCall:
        """Report how a consumed call ended: outcome succeeded, failed or unknown."""
        body: dict[str, Any] = {"attempt_id": attempt_id, "outcome": outcome, "duration_ms": duration_ms}
        body.update({"error": error} if error else {"output": output})
        known = {"execution_id": execution_id, "call_id": call_id, "status": outcome}
        return await self.channel.one(ToolCall, asks.result(execution_id, call_id, body), **known)

    async def revoke(self, execution_id: str, call_id: str, *, reason: str = "") -> ToolCall:
        """Revoke a release that was not consumed yet; its signed grant is then worthless.

        Raises:
            NotReleased: there is none to revoke.
        """
        return await self.channel.one(ToolCall, asks.revoke(execution_id, call_id, reason))

    async def report_impact(self, execution_id: str, call_id: str, *, reason: str) -> ToolCall:
        """Report that a call which ran, or may have run, did harm.

        A report is final. A person's second one of a call changes nothing, and its reason is not recorded.

        Raises:
            Refused: the call has not run (`not_open`), 50 people have reported it (`quota`), or its execution ended
                so long ago that deciders have forgotten it (`execution_closed`).
        """
        return await self.channel.one(ToolCall, asks.report_impact(execution_id, call_id, reason))

    async def audit(
        self,
        *,
        subject: str | None = None,
        since: datetime | str | None = None,
        cursor: str | None = None,
    ) -> Page[AuditRow]:
        """The audit entries: who did what."""
        moment = since.isoformat() if isinstance(since, datetime) else since
        return await self.channel.page(
            AuditRow, asks.read("/audit", subject=subject, since=moment, cursor=cursor)
        )

    async def impact(
        self,
        *,
        grant: str | None = None,
        rule: str | None = None,
        reviewer: str | None = None,
        cursor: str | None = None,
    ) -> Page[ToolCall]:
        """The calls that ran because of one grant, one rule or one person: name exactly one of them."""
        read = asks.read("/audit/impact", grant=grant, rule=rule, reviewer=reviewer, cursor=cursor)
        return await self.channel.page(ToolCall, read)

    async def components(self) -> tuple[Component, ...]:
        """The processes of the installation and their state."""
        return (await self.channel.page(Component, asks.read("/components"))).items

    async def fetch(self, path: str, /, **params: Any) -> Any:
        """Any other GET of the API, with its path without `/v1`, as `fetch("/reviewers")`: the unchanged body."""
        return await self.channel.ask(asks.read(path, **params))

    def events(
        self, channels: Sequence[str] = ("events",), *, cursor: str | None = None
    ) -> AsyncGenerator[Event, None]:
        """Follow the live stream across reconnects, without loss or repetition.

        An event of type `resync_required` means that the stream starts again: reload what you display.

        Args:
            channels: `holds`, `executions:ID`, `calls:EXECUTION/CALL`, `events`.
            cursor: of the last event seen.

        Raises:
            Unreachable: the gateway did not answer for too long.
        """
        from placet.transport.feed import feed

        return feed(self.url, self._token, channels, cursor, self._patience, self._mode)
