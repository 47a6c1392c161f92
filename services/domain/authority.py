"""Who may do what: roles for commands, and the authority that a hold asks for."""

from schemas.actor import Actor
from schemas.refusals import Refusal
from services.domain.policy import HoldTerms
from services.domain.state import Call, Execution, Hold

REVIEWERS = ("reviewer", "operator")
# Whom a hold without roles of its own asks.
ANY_REVIEWER = (*REVIEWERS, "admin")


def acts_for_agent(actor: Actor, agent: str) -> bool:
    """Whether the actor may act in an agent's name: its own token, an operator, an admin."""
    if actor.agent is not None:
        return actor.agent == agent
    return actor.has("operator")


def may_steer(actor: Actor, execution: Execution) -> bool:
    """Whether the actor may pause, resume or cancel the run: a reviewer, an operator, or its own agent."""
    return acts_for_agent(actor, execution.agent) if actor.agent is not None else actor.has(*REVIEWERS)


def may_resume(actor: Actor, execution: Execution) -> bool:
    """Whether the actor may end the pause that the run is in: an agent's token only one that it asked for itself."""
    return actor.agent is None or actor.agent == execution.paused_by_agent


def refusal_to_decide(actor: Actor, hold: Hold, call: Call | None) -> tuple[Refusal, str] | None:
    """Why the actor may not decide this hold, or None.

    An agent's token never decides. Where the hold names roles, exactly those count, or a delegation to
    this subject; being an admin is not being a treasurer.
    """
    if actor.agent is not None:
        return Refusal.NOT_AUTHORISED, "an agent's token cannot decide"
    if hold.exclude_requester and actor.subject in requesters_of(hold, call):
        return Refusal.OWN_REQUEST, "the rule wants another person than the one who asked"
    if hold.delegated_to == actor.subject:
        return None
    if hold.roles and not set(hold.roles) & set(actor.roles):
        return Refusal.FORBIDDEN_ROLE, f"needs one of the roles: {', '.join(hold.roles)}"
    if not hold.roles and not actor.has(*REVIEWERS):
        return Refusal.FORBIDDEN_ROLE, "needs the role reviewer"
    return None


def widened(roles: tuple[str, ...], escalate_roles: tuple[str, ...]) -> tuple[str, ...]:
    """Whom an escalated hold asks: more people, never fewer; one that any reviewer could decide stays so."""
    return tuple(dict.fromkeys((*(roles or ANY_REVIEWER), *escalate_roles)))


def roles_as_asked(hold: Hold, terms: HoldTerms) -> tuple[str, ...]:
    """Whom today's terms would ask where this hold stands: also those of the escalation, once it has escalated.

    Terms that first ask somebody else are of another rule, whose own escalation has not come.
    """
    same_rule = set(terms.roles) <= set(hold.roles)
    return widened(terms.roles, terms.escalate_roles) if same_rule and _has_escalated(hold) else terms.roles


def _has_escalated(hold: Hold) -> bool:
    # An escalation leaves no other to come; that a rule first asks those whom it also escalates to is none.
    to_come = hold.escalate_at_ms is not None or hold.on_timeout == "escalate"
    return not to_come and bool(hold.escalate_roles) and set(hold.escalate_roles) <= set(hold.roles)


def requesters_of(hold: Hold, call: Call | None) -> tuple[str, ...]:
    """The subjects whose own request this hold is about: its opener, and who edited the call."""
    return (hold.requester, *(call.requesters if call else ()))
