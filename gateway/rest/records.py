"""/v1/audit, /v1/agents, /v1/reviewers and /v1/dead-letters: records and statistics from the log."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.identity.authentication import check_owner, check_reads, check_role
from gateway.rest.documented import operation
from gateway.rest.history import read_time
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, Choice, Parameter, Time
from gateway.rest.request_context import RequestContext, answer, context_of, listed
from projections.folds.approval import share_json
from projections.folds.audit import audit_json
from projections.folds.dead_letters import NOBODY, dead_letter_json
from projections.folds.rows import moment
from projections.queries import lists
from projections.queries.reviewers import DECISIONS, ProbeCounts, ReviewerRow, probe_counts, reviewers
from projections.tables.agents import COUNTERS, AgentRow
from projections.tables.log import DeadLetterRow
from schemas.topics import DAY_MS

router = APIRouter(prefix="/v1", tags=["records"])
Context = Annotated[RequestContext, Depends(context_of)]
SUBJECT = Parameter("subject", "Only what this subject did.")
REVIEWERS_DAYS = 30
INSTALLATION = "installation"
SCOPE = Choice(
    "scope",
    f"`{INSTALLATION}`: those of every tenant and those of none, for an admin of the installation.",
    choices=(INSTALLATION,),
)
SINCE = Time("since", "Only from this RFC 3339 time on.")


@router.get(
    "/audit",
    operation_id="listAudit",
    **operation({200: r.Page[r.AuditRow]}, parameters=(SUBJECT, SINCE, CURSOR, LIMIT, AFTER)),
)
async def list_audit(context: Context) -> Response:
    """List the acts of authority with the subjects that took them, oldest first."""
    check_role(context.actor, "analyst", "operator")
    actor, limit, since_ms = context.actor, context.limit(), _since_ms(context)
    subject, cursor = context.query("subject"), context.cursor()
    return await context.paged(
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
async def list_agents(context: Context) -> Response:
    """List every agent with its activity, by tool."""
    check_reads(context.actor)
    actor = context.actor
    rows, _ = await context.ask_views(lambda now: lists.agents(now, actor.tenant, actor.project))
    agents = [_agent(name, list(group)) for name, group in groupby(rows, lambda row: str(row["agent"]))]
    return answer(listed(context.gate, agents))


@router.get(
    "/reviewers",
    operation_id="listReviewers",
    **operation({200: r.Page[r.Reviewer]}, parameters=(SINCE,)),
)
async def list_reviewers(context: Context) -> Response:
    """List the reviewers: how many decisions of each kind, how fast, and how often after hardly a look.

    Also how many of the calls that operators had planted they missed. Without `since`, of the last 30 days.
    """
    check_reads(context.actor)
    actor, since_ms = context.actor, _since_ms(context)
    if since_ms is None:
        since_ms = context.gate.live.time.now_ms() - REVIEWERS_DAYS * DAY_MS
    place = (actor.tenant, actor.project, since_ms)
    (rows, probes), _ = await context.ask_views(
        lambda now: (reviewers(now, *place), probe_counts(now, *place))
    )
    return answer(listed(context.gate, [_reviewer(row, probes.get(row.reviewer)) for row in rows]))


@router.get(
    "/dead-letters",
    operation_id="listDeadLetters",
    **operation({200: r.Page[r.DeadLetter]}, parameters=(SCOPE, CURSOR, LIMIT, AFTER)),
)
async def list_dead_letters(context: Context) -> Response:
    """List the records that could not be read or verified, newest first.

    An operator sees those of the project; with a token of the whole tenant also those whose key names the tenant and
    no project. The installation's admin sees all with `scope=installation`, so that every record is visible to
    someone; of other tenants' records only the position and the reason are shown.
    """
    actor, cursor, limit = context.actor, context.cursor(), context.limit()
    if context.one_of(SCOPE) == INSTALLATION:
        check_owner(context.claims)
        return await context.paged(
            lambda now: lists.all_dead_letters(now, cursor, limit),
            lambda row: _redacted(row, actor.tenant),
        )
    check_role(actor, "operator")
    shared = context.gate.topics.definition_commands
    whole = context.claims.wide is not None
    return await context.paged(
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


def _since_ms(context: RequestContext) -> int | None:
    since = context.query("since")
    return None if since is None else read_time(since, "since")


def _reviewer(row: ReviewerRow, probes: ProbeCounts | None) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("reviewer", *DECISIONS)}
    return {
        **shown,
        "last_decided_at": moment(row.last_decided_at_ms),
        "average_wait_ms": round(row.wait_ms),
        "average_dwell_ms": None if row.dwell_ms is None else round(row.dwell_ms),
        "measured_approvals": row.measured,
        "quick_approvals": row.quick,
        "quick_share": round(row.quick / row.measured, 6) if row.measured else None,
        "probes": None if probes is None else _probes(probes),
    }


def _probes(counts: ProbeCounts) -> dict[str, Any]:
    return {**counts._asdict(), **share_json(counts.missed, counts.answered)}


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
