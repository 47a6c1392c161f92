"""/v1/agents/{agent}/trust, its classes, and calls assessed by it; and /v1/metrics/approval: what trust effects."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.identity.authentication import check_reads
from gateway.operations.assessing import AgentsPast, assess_calls
from gateway.problems import Problem, not_found
from gateway.rest.documented import operation
from gateway.rest.history import read_time
from gateway.rest.parameters import AFTER, CURSOR, Number, Parameter, Time
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.shares.work import owner_of
from projections.folds.approval import WeighedHolds, approval_json
from projections.folds.rows import moment
from projections.folds.trust_classes import agent_score, class_json, trust_classes
from projections.queries import lists
from projections.queries.approval import waiting_samples, weighed_holds
from projections.queries.moment import Moment
from projections.queries.paging import MAX_LIMIT, BadCursor, cursor_at, some_after
from projections.queries.trust import class_facts
from schemas.ids import is_client_id
from schemas.refusals import Refusal
from schemas.topics import DAY_MS
from schemas.trust_score import discounting

router = APIRouter(prefix="/v1", tags=["records"])
REPORTED_DAYS = 30
AGENT = Parameter("agent", "Only the calls of this agent.")
SINCE = Time("since", f"Only from this RFC 3339 time on; by default of the last {REPORTED_DAYS} days.")
Context = Annotated[RequestContext, Depends(context_of)]
LIMIT_OF_CLASSES = Number(
    "limit", f"Classes per page, and never more than {MAX_LIMIT}; if it is left out, all that fit in a page."
)
TOOL = Parameter("tool", "Only the classes of this tool, each with its facts.")
AT = Time("at", "As it was at this RFC 3339 time; by default as it is now.")


class _Explained(NamedTuple):
    """A page of the classes of an agent's calls, the score of all of them, and where the next page begins."""

    lower_bound: float
    rows: list[dict[str, Any]]
    following: str | None


@router.get(
    "/agents/{agent}/trust",
    operation_id="getAgentTrust",
    **operation({200: r.AgentTrust}, 404),
)
async def get_trust(context: Context, agent: str) -> Response:
    """Get the trust statistics of an agent of the project, for each tool that it used."""
    check_reads(context.actor)
    actor, trust = context.actor, context.gateway.trust
    rows, _ = await context.ask_views(
        lambda now: lists.agent_evidence(now, actor.tenant, actor.project, agent)
    )
    if not rows:
        raise not_found("agent")
    counted = trust.of_agent(actor.tenant, actor.project, agent)
    tools = [{"tool": row["tool"], **counted[row["tool"]]} for row in rows if row["tool"] in counted]
    found = {"agent": agent, "complete": trust.complete, "through": trust.through(), "tools": tools}
    return answer(context.gate.json(found))


@router.get(
    "/agents/{agent}/trust/classes",
    operation_id="explainAgentTrust",
    **operation({200: r.ExplainedTrust}, 404, parameters=(TOOL, AT, CURSOR, LIMIT_OF_CLASSES, AFTER)),
)
async def explain_trust(context: Context, agent: str) -> Response:
    """Explain the trust in an agent of the project: the score of each class of its calls, and what it comes from.

    The scores are computed from the facts in the views, as deciders compute them from `placet.trust`; today's
    withdrawn accounts are discounted at any time. Classes are in the order of tools and their own. Without `limit`
    the list is one page, unless the classes are so large that the page is cut. Give the next pages the `at` of the
    first one, and they are of the same moment.
    """
    check_reads(context.actor)
    actor, tool, at = context.actor, context.query("tool"), context.query("at")
    cursor, limit = context.cursor(), context.number(LIMIT_OF_CLASSES)
    live = context.gate.live
    now_ms = live.time.now_ms() if at is None else read_time(at, "at")
    await context.settle_views_after()
    people = live.definitions.people.of(actor.tenant, actor.project)

    def explained(now: Moment) -> _Explained | None:
        # In the thread that reads the views: an agent can have thousands of classes.
        place = (actor.tenant, actor.project, agent)
        if not lists.agent_evidence(now, *place):
            return None
        until_ms = None if at is None else now_ms
        facts = class_facts(now, *place, now_ms=now_ms, until_ms=until_ms, tool=tool)
        counted, with_facts = discounting(people), tool is not None
        classes = trust_classes(facts, now_ms, counted)
        page, following = some_after(classes, lambda one: one.mark, cursor, limit)
        rows = [
            class_json(one, now_ms, counted, with_facts=with_facts, name_of=people.name_of) for one in page
        ]
        return _Explained(agent_score(classes), rows, following)

    async with context.gateway.work.page(owner_of(actor), context.views_wait):
        try:
            found, _ = await context.ask_views(explained)
        except BadCursor as error:
            raise Problem(Refusal.INVALID, str(error)) from error
        if found is None:
            raise not_found("agent")
        of = {
            "agent": agent,
            "at": moment(now_ms),
            "complete": context.gateway.trust.complete,
            "lower_bound": found.lower_bound,
        }
        return await context.listed(
            found.rows, dict, found.following, _cursor_after_class, name="classes", of=of
        )


def _cursor_after_class(row: dict[str, Any]) -> str:
    return cursor_at((row["tool"], row["trust_class"]))


@router.post(
    "/agents/{agent}/assess",
    operation_id="assessCalls",
    **operation({200: r.Assessment}, 404, body=b.AssessCalls, parameters=(AFTER,)),
)
async def assess(context: Context, agent: str) -> Response:
    """Assess calls before the agent proposes them: the verdict that each would get now, and the risk of the task.

    Nothing is recorded or decided by it: each call is judged again when it is proposed, then also by what untrusted
    tools returned in its run, and by decisions that are remembered.
    """
    check_reads(context.actor)
    if not is_client_id(agent):
        raise not_found("agent")
    actor, given = context.actor, await context.given()
    body = b.read_body(b.AssessCalls, given())
    await context.settle_views_after()

    def asked(now: Moment) -> AgentsPast:
        place = (actor.tenant, actor.project, agent)
        return AgentsPast(bool(lists.agent_evidence(now, *place)), waiting_samples(now, *place))

    past, _ = await context.ask_views(asked)
    assessing = assess_calls(context.gate, context.claims, agent, body, context.gateway.trust, past)
    return answer(await context.priced(assessing))


@router.get(
    "/metrics/approval",
    operation_id="getApprovalMetrics",
    **operation({200: r.ApprovalMetrics}, 404, parameters=(AGENT, SINCE, AFTER)),
)
async def get_approval_metrics(context: Context) -> Response:
    """Get the effect of adaptive approval: interruptions saved, what the sample found, and what people regretted.

    It is about the calls for which a policy's adaptive block weighed trust. The intervals are exact, of 95 %.
    """
    check_reads(context.actor)
    actor, agent, since = context.actor, context.query("agent"), context.query("since")
    now_ms = context.gate.live.time.now_ms()
    since_ms = now_ms - REPORTED_DAYS * DAY_MS if since is None else read_time(since, "since")
    await context.settle_views_after()

    def counted(now: Moment) -> WeighedHolds | None:
        place = (actor.tenant, actor.project)
        known = agent is None or lists.agent_evidence(now, *place, agent)
        return weighed_holds(now, *place, since_ms=since_ms, agent=agent) if known else None

    counts, _ = await context.ask_views(counted)
    if counts is None:
        raise not_found("agent")
    found = {"since": moment(since_ms), "until": moment(now_ms), **approval_json(counts)}
    return answer(context.gate.json(found))
