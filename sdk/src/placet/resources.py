"""The parts of the client that are grouped: executions, holds, policies, tools. For requests see `human_requests`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.models import (
    Execution,
    Hold,
    HoldGroup,
    HoldView,
    Object,
    Page,
    Published,
    Recorded,
    ToolCall,
)
from placet.registering import Registered, declared, definition_of, register
from placet.tool_models import Tool
from placet.transport.port import Request


@dataclass(frozen=True)
class AsyncExecutions:
    """Runs of agents."""

    channel: Channel
    agent: str | None = None

    async def start(
        self,
        execution_id: str | None = None,
        *,
        agent: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
        request: Any = None,
        context: Object | None = None,
    ) -> Execution:
        """Open an execution; with the id of an open one, continue it.

        Raises:
            ExecutionClosed: the id was used and its execution has ended.
        """
        asked = asks.start_execution(execution_id, agent or self.agent, user, workspace, request, context)
        return await self.channel.one(Execution, asked)

    async def get(
        self, execution_id: str, *, at: datetime | str | int | None = None, after: str | None = None
    ) -> Execution:
        """An execution now; with `at`, as it was at a time or version."""
        moment = at.isoformat() if isinstance(at, datetime) else at
        text = None if moment is None else str(moment)
        return await self.channel.one(Execution, asks.get_execution(execution_id, text, after))

    async def list(
        self,
        *,
        state: str | None = None,
        agent: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Execution]:
        """Executions, filtered."""
        return await self.channel.page(Execution, asks.list_executions(state, agent, cursor, limit))

    async def events(self, execution_id: str, *, cursor: str | None = None) -> Page[Object]:
        """The events of an execution, from the log."""
        return await self.channel.objects(asks.execution_events(execution_id, cursor))

    async def calls(self, execution_id: str, *, cursor: str | None = None) -> Page[ToolCall]:
        """All calls of an execution, in the order in which they were proposed; more pages only of very large ones."""
        return await self.channel.page(ToolCall, asks.list_calls(execution_id, cursor))

    async def pause(self, execution_id: str, reason: str = "") -> Execution:
        """Pause it: nothing runs, and no new call is judged, until it is resumed."""
        return await self._change(
            execution_id, asks.change_execution(execution_id, "pause", {"reason": reason})
        )

    async def resume(self, execution_id: str, feedback: str = "") -> Execution:
        """Resume it after a pause."""
        body = {"feedback": feedback} if feedback else {}
        return await self._change(execution_id, asks.change_execution(execution_id, "resume", body))

    async def complete(self, execution_id: str, result: Any = None) -> Execution:
        """End it with its result."""
        return await self._change(execution_id, asks.finish_execution(execution_id, "completed", result))

    async def fail(self, execution_id: str, reason: str) -> Execution:
        """End it with an error."""
        return await self._change(execution_id, asks.finish_execution(execution_id, "failed", reason))

    async def cancel(self, execution_id: str, reason: str = "") -> Execution:
        """End it without a result."""
        return await self._change(execution_id, asks.finish_execution(execution_id, "cancelled", reason))

    async def _change(self, execution_id: str, request: Request) -> Execution:
        return await self.channel.one(Execution, request, execution_id=execution_id)


@dataclass(frozen=True)
class AsyncHolds:
    """Holds: calls and requests that wait for a person."""

    channel: Channel

    async def list(
        self,
        *,
        status: str | None = "open",
        kind: str | None = None,
        agent: str | None = None,
        assignee: str | None = None,
        decidable: str | None = None,
        prefix: str | None = None,
        cursor: str | None = None,
    ) -> Page[Hold]:
        """Holds, filtered.

        Args:
            status: open, resolved, expired or cancelled; None for all.
            kind: permission, clarification, decision or env_var.
            agent: whose calls and questions.
            assignee: who has claimed them or to whom they were delegated; `me` is the token's subject.
            decidable: `me` for the open ones that the token's subject may decide.
            prefix: the beginning of their ids.
            cursor: of the page before.
        """
        filters = {"status": status, "kind": kind, "agent": agent, "assignee": assignee, "cursor": cursor}
        filters |= {"decidable": decidable, "prefix": prefix}
        return await self.channel.page(Hold, asks.list_holds(filters))

    async def get(self, hold_id: str, *, after: str | None = None) -> Hold:
        """One hold."""
        return await self.channel.one(Hold, asks.get_hold(hold_id, after))

    async def view(self, hold_id: str, *, at: str | None = None) -> HoldView:
        """The view of a hold; with `at="decision"` the view that the person who decided it was shown."""
        return await self.channel.one(HoldView, asks.view_hold(hold_id, at))

    async def groups(self, *, agent: str | None = None) -> tuple[HoldGroup, ...]:
        """Similar open holds, as groups, the largest first."""
        return (await self.channel.page(HoldGroup, asks.group_holds(agent))).items

    async def decide(
        self,
        hold_id: str,
        decision: str,
        *,
        digest: str = "",
        view_digest: str = "",
        edited_arguments: Object | None = None,
        feedback: str = "",
        value: Any = None,
        scope: str = "once",
        remember: Object | None = None,
    ) -> Recorded:
        """Approve, edit, reject or respond, with the digest that was seen (`Hold.digest`).

        For a question the digest can be left out.
        With scope `execution` an approval also counts for calls like it in the run, with `rule` a standing rule is
        made of it; `remember` says for which arguments, how long and how often (docs/standing-rules.md).

        `view_digest` names what was shown (`view`). A hold that must be read is approved or edited only with it.

        Raises:
            AlreadyDecided: another person was faster; `fields["winning_decision_id"]` names the decision.
            DigestMismatch: the hold is now about other arguments: read it again.
            Expired: too late.
            Refused: `invalid`, such as a decision on a call without its digest.
        """
        body: dict[str, Any] = {"decision": decision, "digest": digest, "scope": scope}
        if edited_arguments is not None:
            body["edited_arguments"] = edited_arguments
        if remember is not None:
            body["remember"] = dict(remember)
        if view_digest:
            body["view_digest"] = view_digest
        if feedback:
            body["feedback"] = feedback
        if decision == "respond":
            body["value"] = value
        return await self.channel.one(Recorded, asks.change_hold(hold_id, "decision", body))

    async def decide_many(self, items: Sequence[Object]) -> tuple[Object, ...]:
        """Decide several holds of low risk: one answer for each, in order."""
        page = await self.channel.objects(asks.decide_many(list(items)))
        return page.items

    async def claim(self, hold_id: str, seconds: int | None = None) -> Hold:
        """Claim it for five minutes or the given seconds (an hour at most), so that others see it."""
        return await self._change(hold_id, "claim", **({} if seconds is None else {"seconds": seconds}))

    async def release(self, hold_id: str) -> Hold:
        """Release a claimed hold."""
        return await self._change(hold_id, "release")

    async def escalate(self, hold_id: str) -> Hold:
        """Ask the roles of the rule's escalation now."""
        return await self._change(hold_id, "escalate")

    async def delegate(self, hold_id: str, to: str) -> Hold:
        """Delegate it to another subject."""
        return await self._change(hold_id, "delegate", to=to)

    async def extend(self, hold_id: str, seconds: int) -> Hold:
        """Set its deadline later, by at most 7 days at once; it is then at most 366 days from now."""
        return await self._change(hold_id, "extend", seconds=seconds)

    async def _change(self, hold_id: str, verb: str, **body: Any) -> Hold:
        return await self.channel.one(Hold, asks.change_hold(hold_id, verb, body), hold_id=hold_id)


@dataclass(frozen=True)
class AsyncPolicies:
    """Policy documents."""

    channel: Channel

    async def publish(self, name: str, document: str | Object) -> Published:
        """Publish a version: YAML text, sent as it is, or the document as an object.

        Raises:
            Refused: `invalid`, with `fields["errors"]`.
        """
        return await self.channel.one(Published, asks.put_policy(name, document))

    async def check(self, name: str, document: str | Object) -> Object:
        """All errors and warnings of a document against the policies in force, and its changes; see `publish`."""
        found: Object = await self.channel.ask(asks.check_policy(name, document))
        return found

    async def list(self, status: str | None = None, *, cursor: str | None = None) -> Page[Object]:
        """The policies in force, with their documents; `status` may be `retired` or `all`."""
        return await self.channel.objects(asks.read("/policies", status=status, cursor=cursor))

    async def get(self, name: str, version: int | None = None) -> Object:
        """A policy at its newest version, or at a given one."""
        found: Object = await self.channel.ask(asks.get_policy(name, version))
        return found

    async def retire(self, name: str, *, version: int | None = None, reason: str = "") -> Object:
        """Retire a policy; refused if `version` is given and another version is in force."""
        found: Object = await self.channel.ask(asks.retire_policy(name, version, reason))
        return found

    async def versions(self, name: str, *, cursor: str | None = None) -> Page[Object]:
        """The published versions, with their documents, the newest first."""
        return await self.channel.objects(asks.policy_versions(name, cursor))


@dataclass(frozen=True)
class AsyncTools:
    """Published tools."""

    channel: Channel

    async def register(self, *functions: Callable[..., Any]) -> Sequence[Registered]:
        """Publish the definitions of gated functions that differ from the published ones; needs the role operator.

        Raises:
            TypeError: one of them is not gated, or its parameters have types that JSON Schema cannot express.
            NotAuthorised: one of them differs from the published one, and this token may not publish.
        """
        definitions = [definition_of(*declared(function)) for function in functions]
        return [await register(self.channel, definition) for definition in definitions]

    async def put(self, name: str, definition: Object) -> Published:
        """Publish an MCP tool definition {description, inputSchema, annotations, idempotent}."""
        return await self.channel.one(Published, asks.put_tool(name, definition))

    async def list(self, *, cursor: str | None = None) -> Page[Tool]:
        """All tools, at their newest versions, by name."""
        return await self.channel.page(Tool, asks.read("/tools", cursor=cursor))


@dataclass(frozen=True)
class AsyncPrincipals:
    """People and services of the tenant: their accounts and roles."""

    channel: Channel

    async def publish(self, name: str, document: Object) -> Published:
        """Publish {subjects, roles, agents, disabled}; needs the role admin."""
        return await self.channel.one(Published, asks.put_principal(name, document))

    async def list(self, *, cursor: str | None = None) -> Page[Object]:
        """All published principals, at their newest versions, by name."""
        return await self.channel.objects(asks.read("/principals", cursor=cursor))
