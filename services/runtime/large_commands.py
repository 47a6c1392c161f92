"""What large commands may take of a decider: whoever brings much to read, to write and to show waits for its own.

All commands of a decider are decided on one thread, and a call of 256 KiB can take half a second of it: it is parsed,
digested, and all of it rendered for the person who is to see it. That is charged to the tenant by the processor time
that it took (`shares`). A tenant whose share is used up is told to ask again before anything of its next large
command is read. What is smaller is never charged and never put off.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from schemas import commands as k
from schemas.actor import Actor
from schemas.message import Message
from services.domain.state import Execution
from services.runtime.shares import Shares

# Some 5 ms at worst; in characters, of all that a command says and that must be shown with it.
FREE_CHARS = 2 * 1024
# What any command may take: of a longer one only the rest is charged. Pages of text stay within it.
FREE_S = 0.005
SHARE_SPENT = "larger calls and answers of this tenant have used up their share of time for now: ask again"
# What begins something. A result, an end or a deadline is charged, and never put off: it says what is so already.
_MAY_BE_PUT_OFF = (
    k.StartExecution,
    k.ProposeToolCall,
    k.RequestHumanInput,
    k.DecideHold,
    k.ResumeExecution,
)
# What is shown with the run's request, which may be longer than the rest.
_SHOWN_WITH_REQUEST = (k.ProposeToolCall, k.RequestHumanInput)
# What may judge calls that waited for the end of a pause.
_JUDGES_PARKED = (k.ResumeExecution, k.ExpireDue)


def _shares() -> Shares:
    return Shares(time.monotonic)


@dataclass(frozen=True, slots=True)
class LargeCommands:
    """The shares of a decider, for all its partitions. People have theirs apart, so that no agent uses them up."""

    agents: Shares = field(default_factory=_shares)
    people: Shares = field(default_factory=_shares)
    # By the wall each tenant would pay for what its neighbours on the machine take meanwhile.
    clock_s: Callable[[], float] = time.thread_time

    def decided(
        self,
        state: Execution | None,
        body: Message,
        actor: Actor,
        decide: Callable[[], list[Message]],
        put_off: Callable[[str], list[Message]],
    ) -> list[Message]:
        """A command's events.

        Args:
            state: the execution that it is for, or None.
            body: what is asked.
            actor: who asks.
            decide: gives the events.
            put_off: gives those of a refusal that says to ask again, from its reason.
        """
        if chars_of(state, body) <= FREE_CHARS:
            return decide()
        shares = self.people if _is_persons(body, actor) else self.agents
        if isinstance(body, _MAY_BE_PUT_OFF) and shares.is_spent(actor.tenant):
            return put_off(SHARE_SPENT)
        began_s = self.clock_s()
        try:
            return decide()
        finally:
            shares.charge(actor.tenant, max(self.clock_s() - began_s - FREE_S, 0.0))


def chars_of(state: Execution | None, body: Message) -> int:
    """How much must be read and shown to decide a command, in characters."""
    if isinstance(body, _JUDGES_PARKED):
        return 0 if state is None else sum(map(_parked_chars, (state.calls[one] for one in state.parked)))
    own = sum(len(value) for value in body.__dict__.values() if isinstance(value, str))
    return own + len(state.request) if state and isinstance(body, _SHOWN_WITH_REQUEST) else own


def _parked_chars(call: Any) -> int:
    return len(call.arguments) + len(call.context) + len(call.claims) + len(call.reason)


def _is_persons(body: Message, actor: Actor) -> bool:
    # What the timer judges was proposed by an agent.
    return actor.agent is None and not isinstance(body, k.ExpireDue)
