"""Permissions: the roles that commands need, and the people who can decide a hold."""

from schemas import authority
from schemas.actor import Actor, tool_role
from schemas.principals import TenantPeople
from schemas.refusals import Refusal
from schemas.requirement import roles_asked, widened
from services.domain.authority.vote_counting import REVIEWERS, asked_by, edited_by
from services.domain.context import Context
from services.domain.policy import HoldTerms
from services.domain.state import Call, Execution, Hold


def acts_for_agent(actor: Actor, agent: str) -> bool:
    """True if the actor can act in an agent's name: the agent's own token, an operator or an admin."""
    if actor.agent is not None:
        return actor.agent == agent
    return actor.has("operator")


def may_run(actor: Actor, call: Call) -> bool:
    """True if the actor can consume a call's release and report its result: the agent's actor, or the tool's server.

    A server with the role `tool:NAME` runs that one tool, for any agent; it cannot propose or read anything.
    """
    return acts_for_agent(actor, call.agent) or (actor.agent is None and tool_role(call.tool) in actor.roles)


def may_steer(actor: Actor, execution: Execution) -> bool:
    """True if the actor can pause, resume or cancel the run: a reviewer, an operator, or the run's own agent."""
    return acts_for_agent(actor, execution.agent) if actor.agent is not None else actor.has(*REVIEWERS)


def may_resume(actor: Actor, execution: Execution) -> bool:
    """True if the actor can end the current pause; an agent's token ends only the agent's own pause."""
    return actor.agent is None or actor.agent == execution.paused_by_agent


def refusal_to_decide(
    state: Execution, hold: Hold, call: Call | None, ctx: Context
) -> tuple[Refusal, str] | None:
    """The reason why the actor cannot decide this hold, or None; see `schemas.authority`."""
    people = ctx.people
    refusal = authority.refusal_to_decide(
        asked_by(hold), lambda: requesters_of(state, hold, call, people), ctx.actor, people
    )
    return refusal or _refusal_of_planter(call, ctx)


def _refusal_of_planter(call: Call | None, ctx: Context) -> tuple[Refusal, str] | None:
    name_of = ctx.people.name_of
    if call is None or call.probe is None or name_of(call.probe.by) != name_of(ctx.actor.subject):
        return None
    # In the words of any other hold: the refusal is recorded where everybody reads it.
    return Refusal.OWN_REQUEST, authority.OWN_REQUEST


def requesters_of(state: Execution, hold: Hold, call: Call | None, people: TenantPeople) -> frozenset[str]:
    """The people whose own request this hold is about.

    They are the hold's opener, the call's editors, and the people for whom the agent acts: the one who started the
    run, the run's user, the principals who list the agent as theirs, and all who had sent it a message before it
    asked.
    """
    sent = senders_before(state, hold if call is None else call)
    asked = people.names_of((hold.requester,) if call is None else (hold.requester, *call.requesters))
    behind = asked | people.meant_by_any(sent) | people_behind(state, people)
    return behind if call is None else behind | edited_by(state, call, people)


def senders_before(state: Execution, asked: Call | Hold) -> tuple[str, ...]:
    """The subjects who had sent a message in the conversation before the agent proposed a call or asked a question.

    Also those for whom a token had sent, proposed or asked something (`UserJoined`). All of them, not only the sender
    of the message that the agent was answering: an agent acts on the whole conversation. What is sent later changes
    nothing.
    """
    return state.senders[: asked.senders]


def people_behind(state: Execution, people: TenantPeople) -> frozenset[str]:
    """The people for whom the run's agent acts."""
    return authority.people_behind(state.agent, state.started_by, state.user, people)


def roles_as_asked(hold: Hold, terms: HoldTerms) -> tuple[str, ...]:
    """The roles that today's terms would ask at this hold's stage; with the escalation's roles once it has escalated.

    If the terms ask other people at first than the hold, they are another rule's, whose escalation is not due yet.
    """
    asked = roles_asked(terms)
    same_rule = set(asked) <= set(roles_asked(hold)) and set(terms.reviewers) <= set(hold.reviewers)
    return widened(terms, terms.escalate_roles) if same_rule and _has_escalated(hold) else asked


def _has_escalated(hold: Hold) -> bool:
    # A hold that has escalated has no escalation left to come. As long as one is to come, the hold has not escalated,
    # even if its rule asks the escalation's roles from the start.
    to_come = hold.escalate_at_ms is not None or hold.on_timeout == "escalate"
    return not to_come and bool(hold.escalate_roles) and set(hold.escalate_roles) <= set(hold.roles)
