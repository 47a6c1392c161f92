"""The people for whom tokens act in a run, beside the one for whom it was started.

A token of an agent can be for one user. Whatever it says to the agent, proposes, asks or replies is then that
person's own request, as if they had sent it themselves: without this they could approve it by another token. A person
who replies in the agent's place has a say in the same way: the agent's next worker takes a recorded reply for its
own.
"""

from schemas import commands as k
from schemas import conversation_commands as v
from schemas.actor import Actor
from schemas.events.conversations import UserJoined
from schemas.limits import SENDERS_MAX
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.context import Context
from services.domain.execution.folding import Folds, with_sender
from services.domain.state import Execution

FULL = (
    Refusal.QUOTA,
    f"{SENDERS_MAX} subjects have a say in this run, which is the maximum: start another one",
)


def joining(state: Execution, command: Message, ctx: Context) -> UserJoined | None:
    """The event by which a person joins the run; None if there is none, or they have."""
    person = _person(command, ctx.actor)
    if person in ("", state.user, *state.senders):
        return None
    return UserJoined(user=person, by=ctx.actor.subject)


def is_full(state: Execution, subject: str) -> bool:
    """Returns True if no other subject can join: if one were forgotten, that person could grant what they asked."""
    return len(state.senders) >= SENDERS_MAX and subject not in state.senders


def _person(command: Message, actor: Actor) -> str:
    """The person who has a say by a command, beside the subject that the record names in any case; empty for none."""
    match command:
        case v.SendMessage() | k.ProposeToolCall() | k.RequestHumanInput():
            return actor.user
        case v.PostReply():
            return _in_the_agents_place(actor)
        case v.EndTurn() if command.reply:
            return _in_the_agents_place(actor)
    return ""


def _in_the_agents_place(actor: Actor) -> str:
    return actor.user or (actor.subject if actor.agent is None else "")


def _joined(state: Execution, event: UserJoined, at_ms: int) -> Execution:
    return with_sender(state, event.user)


FOLDS: Folds = {UserJoined: _joined}
