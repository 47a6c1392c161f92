"""Limits on the time of large commands: tenants whose commands take much time wait for their own work only.

All commands of a decider are decided on one thread, and a call of 256 KiB can take half a second of it: it is parsed,
digested, and rendered completely for the person who will see it. Folding an event takes time, too: the result of an
open-world tool is split into words. Both are charged to the tenant by the processor time that they took (`shares`).
If a tenant's share is used up, its next large command is refused before it is read, and the sender is told to retry.
Smaller commands are never charged and never put off.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from schemas import commands as k
from schemas.actor import Actor
from schemas.message import Message
from schemas.record import Command
from services.domain.execution.folding import message_of
from services.domain.state import Execution
from services.runtime.shares import Shares

# About 5 ms at worst; in characters, of everything in a command and everything that must be shown with it.
FREE_CHARS = 2 * 1024
# The free time of any decision, and of folding any event: for a longer one only the rest is charged. Pages of text
# stay within it.
FREE_S = 0.005
SHARE_SPENT = "larger calls and answers of this tenant have used up their share of time for now: ask again"
# Commands that begin something. Results, ends and deadlines are charged but never put off: they report facts.
_MAY_BE_PUT_OFF = (
    k.StartExecution,
    k.ProposeToolCall,
    k.PlantProbe,
    k.RequestHumanInput,
    k.DecideHold,
    k.ResumeExecution,
)
# Commands that are shown with the run's request and the message that is answered: both may be longer than the rest.
_SHOWN_WITH_REQUEST = (k.ProposeToolCall, k.RequestHumanInput)
# Commands that may judge calls that waited for the end of a pause.
_JUDGES_PARKED = (k.ResumeExecution, k.ExpireDue)
_Result = TypeVar("_Result")


def _shares() -> Shares:
    return Shares(time.monotonic)


@dataclass(frozen=True, slots=True)
class LargeCommands:
    """The shares of a decider, for all its partitions. People have separate ones, so that no agent uses theirs up."""

    agents: Shares = field(default_factory=_shares)
    people: Shares = field(default_factory=_shares)
    # By wall time, each tenant would also pay for other processes on the machine.
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
            state: the command's execution, or None.
            body: the command's body.
            actor: the sender.
            decide: returns the events.
            put_off: returns the events of a refusal that says to retry, for a given reason.
        """
        if chars_of(state, body) <= FREE_CHARS:
            return decide()
        shares = self._shares_of(body, actor)
        if isinstance(body, _MAY_BE_PUT_OFF) and shares.is_spent(actor.tenant):
            return put_off(SHARE_SPENT)
        return self._charged(shares, actor.tenant, decide)

    def folded(self, event: Message, of: Command, fold: Callable[[], _Result]) -> _Result:
        """What folding an event gives.

        Args:
            event: the event's body.
            of: the command that was just decided, and whose sender is charged.
            fold: folds the event.
        """
        if _chars_in(event) <= FREE_CHARS:
            return fold()
        return self._charged(self._shares_of(of.body, of.actor), of.actor.tenant, fold)

    def _shares_of(self, body: Message, actor: Actor) -> Shares:
        return self.people if _is_persons(body, actor) else self.agents

    def _charged(self, shares: Shares, tenant: str, work: Callable[[], _Result]) -> _Result:
        began_s = self.clock_s()
        try:
            return work()
        finally:
            shares.charge(tenant, max(self.clock_s() - began_s - FREE_S, 0.0))


def chars_of(state: Execution | None, body: Message) -> int:
    """The number of characters to read and show in order to decide a command."""
    if isinstance(body, _JUDGES_PARKED):
        return 0 if state is None else sum(map(_parked_chars, (state.calls[one] for one in state.parked)))
    own = _chars_in(body)
    if state is None or not isinstance(body, _SHOWN_WITH_REQUEST):
        return own
    return own + len(state.request) + len(message_of(state))


def _chars_in(body: Message) -> int:
    return sum(len(value) for value in body.__dict__.values() if isinstance(value, str))


def _parked_chars(call: Any) -> int:
    return len(call.arguments) + len(call.context) + len(call.claims) + len(call.reason)


def _is_persons(body: Message, actor: Actor) -> bool:
    # An agent proposed the calls that the timer judges.
    return actor.agent is None and not isinstance(body, k.ExpireDue)
