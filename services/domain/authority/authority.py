"""Who may do what: roles for commands, and the authority that a hold asks for."""

from schemas import authority
from schemas.actor import Actor, tool_role
from schemas.principals import TenantPeople
from schemas.refusals import Refusal
from schemas.requirement import roles_asked, widened
from services.domain.authority.voices import REVIEWERS, asked_by, edited_by
from services.domain.context import Context
from services.domain.policy import HoldTerms
from services.domain.state import Call, Execution, Hold


def acts_for_agent(actor: Actor, agent: str) -> bool:
    """Whether the actor may act in an agent's name: its own token, an operator, an admin."""
    if actor.agent is not None:
        return actor.agent == agent
    return actor.has("operator")


def may_run(actor: Actor, call: Call) -> bool:
    """Whether the actor may consume a call's release and report on it: who acts for its agent, or its tool's server.

    The role `tool:NAME` is of a server that runs one tool, for whichever agent: it proposes nothing and sees nothing.
    """
    return acts_for_agent(actor, call.agent) or (actor.agent is None and tool_role(call.tool) in actor.roles)


def may_steer(actor: Actor, execution: Execution) -> bool:
    """Whether the actor may pause, resume or cancel the run: a reviewer, an operator, or its own agent."""
    return acts_for_agent(actor, execution.agent) if actor.agent is not None else actor.has(*REVIEWERS)


def may_resume(actor: Actor, execution: Execution) -> bool:
    """Whether the actor may end the pause that the run is in: an agent's token only one that it asked for itself."""
    return actor.agent is None or actor.agent == execution.paused_by_agent


def refusal_to_decide(
    state: Execution, hold: Hold, call: Call | None, ctx: Context
) -> tuple[Refusal, str] | None:
    """Why the actor may not decide this hold, or None; see `schemas.authority`."""
    people = ctx.people
    return authority.refusal_to_decide(
        asked_by(hold), lambda: requesters_of(state, hold, call, people), ctx.actor, people
    )


def requesters_of(state: Execution, hold: Hold, call: Call | None, people: TenantPeople) -> frozenset[str]:
    """The people whose own request this hold is about.

    Those are its opener and who edited the call; and for whom the agent acts: who started the run, the run's user,
    and the principals who have the agent among theirs.
    """
    behind = people.names_of((hold.requester,)) | people_behind(state, people)
    return (
        behind if call is None else behind | people.names_of(call.requesters) | edited_by(state, call, people)
    )


def people_behind(state: Execution, people: TenantPeople) -> frozenset[str]:
    """For whom the run's agent acts."""
    return authority.people_behind(state.agent, state.started_by, state.user, people)


def roles_as_asked(hold: Hold, terms: HoldTerms) -> tuple[str, ...]:
    """Whom today's terms would ask where this hold stands: also those of the escalation, once it has escalated.

    Terms that first ask somebody else are of another rule, whose own escalation has not come.
    """
    asked = roles_asked(terms)
    same_rule = set(asked) <= set(roles_asked(hold)) and set(terms.reviewers) <= set(hold.reviewers)
    return widened(terms, terms.escalate_roles) if same_rule and _has_escalated(hold) else asked


def _has_escalated(hold: Hold) -> bool:
    # An escalation leaves no other to come; that a rule first asks those whom it also escalates to is none.
    to_come = hold.escalate_at_ms is not None or hold.on_timeout == "escalate"
    return not to_come and bool(hold.escalate_roles) and set(hold.escalate_roles) <= set(hold.roles)
