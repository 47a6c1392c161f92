"""/v1/audit/impact: the calls that ran because of a grant, a rule or a person's decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway import resources as r
from gateway.identity.authentication import check_role
from gateway.problems import Problem, not_found
from gateway.rest.documented import operation
from gateway.rest.parameters import AFTER, CURSOR, LIMIT, Parameter
from gateway.rest.request_context import RequestContext, context_of
from projections.folds.calls import call_json
from projections.queries import impact
from projections.queries.moment import Moment
from projections.queries.paging import Page
from schemas.refusals import Refusal

router = APIRouter(prefix="/v1/audit", tags=["records"])
Context = Annotated[RequestContext, Depends(context_of)]
GRANT = Parameter("grant", "A grant's id.")
RULE = Parameter("rule", "A policy's rule (`policy/rule` or `policy@version/rule`), or a standing rule's id.")
_SAID = {"grant": "grant", "rule": "rule", "reviewer": "person"}
REVIEWER = Parameter("reviewer", "A subject, or a principal with all of its accounts.")


@router.get(
    "/impact",
    operation_id="listImpact",
    **operation({200: r.Page[r.ToolCall]}, 404, parameters=(GRANT, RULE, REVIEWER, CURSOR, LIMIT, AFTER)),
)
async def list_impact(context: Context) -> Response:
    """List the calls that were released because of one grant, one rule or one person, oldest first.

    The calls of a person include those decided by a subject to whom that person had delegated the hold. 404 if the
    name was never used here.
    """
    check_role(context.actor, "analyst", "operator")
    asked = {
        name: value for name in ("grant", "rule", "reviewer") if (value := context.query(name)) is not None
    }
    if len(asked) != 1:
        raise Problem(Refusal.INVALID, "name exactly one of grant, rule and reviewer")
    ((kind, name),) = asked.items()
    return await context.paged(lambda moment: _effects(context, moment, kind, name), call_json)


def _effects(context: RequestContext, moment: Moment, kind: str, name: str) -> Page:
    page, is_known = _found(context, moment, kind, name)
    # For a misspelt name, an empty list would be false reassurance.
    if not page.rows and not is_known():
        raise not_found(f"{_SAID[kind]}: this name was never used here")
    return page


def _found(context: RequestContext, moment: Moment, kind: str, name: str) -> tuple[Page, Callable[[], bool]]:
    actor, cursor, limit = context.actor, context.cursor(), context.limit()
    owner = (actor.tenant, actor.project)
    if kind == "grant":
        page = impact.effects_of_grant(moment, *owner, name, cursor, limit)
        return page, lambda: impact.is_grant(moment, *owner, name)
    definitions = context.gate.live.definitions
    if kind == "rule":
        page = impact.effects_of_rule(moment, *owner, name, cursor, limit)
        return page, lambda: definitions.has_rule(*owner, name) or impact.is_cited(moment, *owner, name)
    people = definitions.people.of(*owner)
    accounts = people.accounts_of(name)
    subjects = accounts or (name,)
    page = impact.effects_of_people(moment, *owner, subjects, cursor, limit, people.meant_by)
    is_published = bool(accounts or people.principal_of(name))
    return page, lambda: is_published or impact.has_acted(moment, *owner, subjects)
