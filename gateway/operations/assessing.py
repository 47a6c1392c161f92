"""Calls assessed before anyone proposes them: what the engine is asked, with all that the verdicts depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.bodies import AssessCalls
from gateway.identity.authentication import permitted_scope
from gateway.live.definitions import Published, in_force, newest
from gateway.live.trust import TrustParts
from gateway.operations.executions import request_text
from gateway.operations.plan import Gate, Reply
from gateway.shares.work import owner_of
from gateway.strictjson import canonical_text
from projections.folds.rows import moment
from schemas.token import Claims


class AgentsPast(NamedTuple):
    """What the views know of an agent.

    Attributes:
        is_known: whether it ever did anything in the project.
        samples: of each sampled call that waits for people: tool, class, partition and offset.
    """

    is_known: bool
    samples: Sequence[tuple[str, str, int, int]]


async def assess_calls(
    gate: Gate, claims: Claims, agent: str, body: AssessCalls, trust: TrustParts, past: AgentsPast
) -> Reply:
    """Assess calls of an agent by the policies in force in the caller's project.

    Args:
        gate: the services of the gateway.
        claims: the caller's; it may read the project.
        agent: the agent's name; of an unknown one nothing is trusted.
        body: the calls.
        trust: the statistics that this gateway has read.
        past: what the views know of the agent.

    Raises:
        Problem: the token does not permit the user or workspace, a field is too large, or it takes too long.
    """
    actor, now_ms = claims.actor, gate.live.time.now_ms()
    tools = _tools(gate, claims, body)
    calls = [_call(one.tool, one.arguments, one.annotations, index) for index, one in enumerate(body.calls)]
    used = {*tools, *(call[0] for call in calls)}
    parts = trust.texts_of(actor.tenant, actor.project, agent, used)
    question = {
        "project": actor.project,
        "agent": agent,
        "user": permitted_scope(claims, "user", body.user),
        "workspace": permitted_scope(claims, "workspace", body.workspace),
        "request": request_text(body.request),
        "context": canonical_text(body.context, "context"),
        "calls": calls,
        "tools": tools,
        "description": body.task_description,
        "now_ms": now_ms,
        "definitions": _definitions(gate, claims, used),
        "trust": {
            "complete": parts is not None,
            "through": trust.through(),
            "parts": parts or [],
        },
        "samples": past.samples,
    }
    found = await gate.definitions.assessment(owner_of(actor), question)
    requires = not calls or any(call["requires_approval"] for call in found["calls"])
    of = {"agent": agent, "is_known": past.is_known, "at": moment(now_ms), "requires_approval": requires}
    return gate.json({**of, **found})


def _call(tool: str, arguments: Any, annotations: Any, index: int) -> tuple[str, str, str]:
    place = f"calls[{index}]"
    return (
        tool,
        canonical_text(arguments, f"{place}.arguments"),
        canonical_text(annotations, f"{place}.annotations"),
    )


def _tools(gate: Gate, claims: Claims, body: AssessCalls) -> list[str]:
    """The tools that the task may use beside its calls: without any of either, every tool of the project."""
    if body.tools or body.calls:
        return sorted(set(body.tools))
    actor = claims.actor
    return sorted({one.name for one in newest(gate.live.definitions.tools, actor.tenant, actor.project)})


def _definitions(gate: Gate, claims: Claims, tools: set[str]) -> list[dict[str, Any]]:
    """The policies in force, the tools that are used, and all people, in the order in which they were published."""
    known, tenant, project = gate.live.definitions, claims.actor.tenant, claims.actor.project
    used = [one for one in newest(known.tools, tenant, project) if one.name in tools]
    policies = in_force(known.policies, tenant, project)
    people = newest(known.principals, tenant, project)
    found: list[tuple[int, dict[str, Any]]] = [
        *((one.offset, _row("policy", one, document=one.document)) for one in policies),
        *((one.offset, _row("principal", one, document=one.document)) for one in people),
        *(
            (one.offset, _row("tool", one, definition=one.document, tool_version=one.tool_version))
            for one in used
        ),
    ]
    return [row for _, row in sorted(found, key=lambda one: one[0])]


def _row(kind: str, one: Published, **more: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": one.name,
        "version": one.version,
        "by": one.by,
        "project": one.project,
        **more,
    }
