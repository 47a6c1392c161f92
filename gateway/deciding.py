"""Which open holds somebody may decide, from the rows at hand: what to list. The decider has the last word."""

from __future__ import annotations

from gateway.live.live import Live
from projections.folds.rows import Row, json_value
from schemas.actor import Actor
from schemas.authority import Asked, people_behind, refusal_to_decide
from schemas.ids import execution_key
from schemas.principals import TenantPeople


def may_decide(live: Live, row: Row, actor: Actor) -> bool:
    """Whether the actor may give a word on an open hold that they have given none on yet."""
    people = live.definitions.people.of(actor.tenant)
    asked = Asked(
        roles=tuple(json_value(row["roles"])),
        reviewers=tuple(json_value(row["reviewers"])),
        excluded=tuple(json_value(row["excluded"])),
        exclude_requester=bool(row["exclude_requester"]),
        delegated_to=row["assignee"] or "",
    )
    if refusal_to_decide(asked, lambda: _requesters(live, row, people), actor, people) is not None:
        return False
    voices = people.names_of(vote["by"] for vote in json_value(row["votes"]))
    return people.name_of(actor.subject) not in voices


def _requesters(live: Live, row: Row, people: TenantPeople) -> frozenset[str]:
    key = execution_key(row["tenant"], row["project"], row["execution_id"])
    execution = live.cache.executions.get(key) or {}
    call = live.cache.calls.get((key, row["call_id"])) if row["call_id"] else None
    said = {row["requester"]}
    if call is not None:
        said |= {call["proposed_by"], *(edit["by"] for edit in json_value(call["edits"]) or ())}
    behind = people_behind(
        row["agent"] or "", execution.get("started_by") or "", execution.get("user_id") or "", people
    )
    return people.names_of(said) | behind
