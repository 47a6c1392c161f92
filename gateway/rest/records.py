"""/v1/audit, /v1/agents, /v1/reviewers and /v1/dead-letters: records and statistics from the log."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.identity.doors import check_owner, check_reads, check_role
from gateway.problems import not_found
from gateway.rest.documented import operation
from gateway.rest.door import Door, answer, door_of, listed
from gateway.rest.history import read_time
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, Parameter, Time, Word
from projections.folds.audit import audit_json
from projections.folds.dead_letters import NOBODY, dead_letter_json
from projections.folds.rows import Row, moment
from projections.queries import lists
from projections.tables.agents import COUNTERS, AgentRow
from projections.tables.log import DeadLetterRow
from schemas.topics import DAY_MS

router = APIRouter(prefix="/v1", tags=["records"])
AtDoor = Annotated[Door, Depends(door_of)]
SUBJECT = Parameter("subject", "Only what this subject did.")
REVIEWERS_DAYS = 30
INSTALLATION = "installation"
SCOPE = Word(
    "scope",
    f"`{INSTALLATION}`: those of every tenant and those of none, for an admin of the installation.",
    words=(INSTALLATION,),
)
SINCE = Time("since", "Only from this RFC 3339 time on.")


@router.get(
    "/audit",
    operation_id="listAudit",
    **operation({200: r.Page[r.AuditRow]}, parameters=(SUBJECT, SINCE, CURSOR, LIMIT, AFTER)),
)
async def list_audit(door: AtDoor) -> Response:
    """List the acts of authority with the subjects that took them, oldest first."""
    check_role(door.actor, "analyst", "operator")
    actor, limit, since_ms = door.actor, door.limit(), _since_ms(door)
    subject, cursor = door.query("subject"), door.query("cursor")
    return await door.paged(
        lambda now: lists.audit(
            now,
            actor.tenant,
            actor.project,
            subject=subject,
            since_ms=since_ms,
            cursor=cursor,
            limit=limit,
        ),
        audit_json,
    )


@router.get("/agents", operation_id="listAgents", **operation({200: r.Page[r.Agent]}))
async def list_agents(door: AtDoor) -> Response:
    """List every agent with its activity, by tool."""
    check_reads(door.actor)
    actor = door.actor
    rows, _ = await door.ask_views(lambda now: lists.agents(now, actor.tenant, actor.project))
    agents = [_agent(name, list(group)) for name, group in groupby(rows, lambda row: str(row["agent"]))]
    return answer(listed(door.gate, agents))


@router.get(
    "/agents/{agent}/trust",
    operation_id="getAgentTrust",
    **operation({200: r.AgentTrust}, 404),
)
async def get_trust(door: AtDoor, agent: str) -> Response:
    """Get the trust statistics of an agent of the project, for each tool that it used."""
    check_reads(door.actor)
    actor, trust = door.actor, door.gateway.trust
    rows, _ = await door.ask_views(lambda now: lists.agent_evidence(now, actor.tenant, actor.project, agent))
    if not rows:
        raise not_found("agent")
    counted = trust.of_agent(actor.tenant, actor.project, agent)
    tools = [{"tool": row["tool"], **counted[row["tool"]]} for row in rows if row["tool"] in counted]
    found = {"agent": agent, "complete": trust.complete, "through": trust.through(), "tools": tools}
    return answer(door.gate.json(found))


@router.get(
    "/reviewers",
    operation_id="listReviewers",
    **operation({200: r.Page[r.Reviewer]}, parameters=(SINCE,)),
)
async def list_reviewers(door: AtDoor) -> Response:
    """List the reviewers with the number of their decisions of each kind; without `since`, of the last 30 days."""
    check_reads(door.actor)
    actor, since_ms = door.actor, _since_ms(door)
    if since_ms is None:
        since_ms = door.gate.live.time.now_ms() - REVIEWERS_DAYS * DAY_MS
    rows, _ = await door.ask_views(lambda now: lists.reviewers(now, actor.tenant, actor.project, since_ms))
    return answer(listed(door.gate, [_reviewer(row) for row in rows]))


@router.get(
    "/dead-letters",
    operation_id="listDeadLetters",
    **operation({200: r.Page[r.DeadLetter]}, parameters=(SCOPE, CURSOR, LIMIT, AFTER)),
)
async def list_dead_letters(door: AtDoor) -> Response:
    """List the records that could not be read or verified, newest first.

    An operator sees those of the project; with a token of the whole tenant also those whose key names the tenant and
    no project. The installation's admin sees all with `scope=installation`, so that every record is visible to
    someone; of other tenants' records only the position and the reason are shown.
    """
    actor, cursor, limit = door.actor, door.query("cursor"), door.limit()
    if door.one_of(SCOPE) == INSTALLATION:
        check_owner(door.claims)
        return await door.paged(
            lambda now: lists.all_dead_letters(now, cursor, limit),
            lambda row: _redacted(row, actor.tenant),
        )
    check_role(actor, "operator")
    shared = door.gate.topics.definition_commands
    whole = door.claims.wide is not None
    return await door.paged(
        lambda now: lists.dead_letters(
            now,
            actor.tenant,
            actor.project,
            whole=whole,
            shared_topic=shared,
            cursor=cursor,
            limit=limit,
        ),
        dead_letter_json,
    )


def _since_ms(door: Door) -> int | None:
    since = door.query("since")
    return None if since is None else read_time(since, "since")


def _reviewer(row: Row) -> dict[str, Any]:
    shown = {name: row[name] for name in ("reviewer", *lists.DECISIONS)}
    dwell_ms = row["dwell_ms"]
    return {
        **shown,
        "last_decided_at": moment(row["last_decided_at_ms"]),
        "average_dwell_ms": None if dwell_ms is None else round(dwell_ms),
    }


def _redacted(row: DeadLetterRow, tenant: str) -> dict[str, Any]:
    letter = dead_letter_json(row)
    return letter if row["tenant"] in (NOBODY, tenant) else {**letter, "key": None, "detail": None}


def _agent(name: str, rows: list[AgentRow]) -> dict[str, Any]:
    tools = [
        {
            "tool": row["tool"],
            **{counter: row[counter] for counter in COUNTERS},
            "last_seen_at": moment(row["last_seen_at_ms"]),
        }
        for row in rows
    ]
    return {"agent": name, "tools": tools}
