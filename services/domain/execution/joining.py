"""The people for whom tokens act in a run, beside the one for whom it was started.

A token of an agent can be for one user. Whatever it says to the agent, proposes or asks is then that person's own
request, as if they had sent it themselves: without this they could approve it by another token.
"""

from schemas import commands as k
from schemas import conversation_commands as v
from schemas.events.conversations import UserJoined
from schemas.limits import SENDERS_MAX
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.context import Context
from services.domain.execution.folding import Folds, with_sender
from services.domain.state import Execution

_SAY = (v.SendMessage, k.ProposeToolCall, k.RequestHumanInput)
FULL = (
    Refusal.QUOTA,
    f"{SENDERS_MAX} subjects have a say in this run, which is the maximum: start another one",
)


def joining(state: Execution, command: Message, ctx: Context) -> UserJoined | None:
    """The event by which the user of the actor's token joins the run; None if there is none, or it has."""
    user = ctx.actor.user
    if not isinstance(command, _SAY) or user in ("", state.user, *state.senders):
        return None
    return UserJoined(user=user, by=ctx.actor.subject)


def is_full(state: Execution, subject: str) -> bool:
    """Returns True if no other subject can join: if one were forgotten, that person could grant what they asked."""
    return len(state.senders) >= SENDERS_MAX and subject not in state.senders


def _joined(state: Execution, event: UserJoined, at_ms: int) -> Execution:
    return with_sender(state, event.user)


FOLDS: Folds = {UserJoined: _joined}
