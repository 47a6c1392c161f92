"""The holds that an actor may decide, and so may see, from cached rows. The decider's check is the final one."""

from __future__ import annotations

from gateway.identity.authentication import READERS, acts_for, reads_project
from gateway.live.live import Live
from gateway.problems import Problem
from projections.folds.rows import json_value
from projections.tables.calls import CallRow
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.authority import Asked, delegations_from_text, people_behind, refusal_to_decide
from schemas.ids import execution_key
from schemas.principals import TenantPeople
from schemas.refusals import Refusal


def may_decide(live: Live, row: HoldRow, actor: Actor) -> bool:
    """Return True if the actor may vote on an open hold and has not voted on it yet."""
    people = live.definitions.people.of(actor.tenant, actor.project)
    return _is_asked(live, row, actor, people) and not _has_spoken(row, actor, people)


def sees_hold(live: Live, row: HoldRow, actor: Actor) -> bool:
    """Return True if the actor may read a hold: all of its project, its agent's own, or those it may decide or did.

    A role that the installation defines (treasurer) reads nothing else of its project; a hold that it may decide, it
    may also read.
    """
    if reads_project(actor):
        return True
    if actor.agent is not None:
        return acts_for(actor, row["agent"])
    people = live.definitions.people.of(actor.tenant, actor.project)
    if people.is_disabled(actor.subject):
        return False
    return _has_spoken(row, actor, people) or _is_asked(live, row, actor, people)


def check_sees_hold(live: Live, row: HoldRow, actor: Actor) -> None:
    """Refuse an actor that may not read a hold.

    Raises:
        Problem: 403 not_authorised.
    """
    if not sees_hold(live, row, actor):
        roles = ", ".join(READERS)
        raise Problem(
            Refusal.NOT_AUTHORISED, f"this needs one of the roles {roles}, or to be a reviewer of this hold"
        )


def _is_asked(live: Live, row: HoldRow, actor: Actor, people: TenantPeople) -> bool:
    asked = Asked(
        roles=tuple(json_value(row["roles"])),
        reviewers=tuple(json_value(row["reviewers"])),
        excluded=tuple(json_value(row["excluded"])),
        exclude_requester=bool(row["exclude_requester"]),
        delegations=delegations_from_text(row["delegations"]),
    )
    return refusal_to_decide(asked, lambda: _requesters(live, row, people), actor, people) is None


def _has_spoken(row: HoldRow, actor: Actor, people: TenantPeople) -> bool:
    spoken = (vote["by"] for vote in json_value(row["votes"]))
    # Votes of an account that was since taken from this person are not shown to them.
    return people.name_of(actor.subject) in people.names_of(by for by in spoken if not people.is_disabled(by))


def _requesters(live: Live, row: HoldRow, people: TenantPeople) -> frozenset[str]:
    key = execution_key(row["tenant"], row["project"], row["execution_id"])
    execution = live.cache.executions.get(key) or {}
    call: CallRow | None = live.cache.calls.get((key, row["call_id"])) if row["call_id"] else None
    senders = people.meant_by_any(json_value(row["senders"]) or ())
    asked = {row["requester"]}
    if call is not None:
        asked |= {call["proposed_by"], *(edit["by"] for edit in json_value(call["edits"]) or ())}
    behind = people_behind(
        row["agent"] or "", execution.get("started_by") or "", execution.get("user_id") or "", people
    )
    return people.names_of(asked) | senders | behind
