"""Why an agent does not begin with a message."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from placet.cli.earlier_turns import turn_of
from placet.cli.session import every
from placet.cli.telling import tell
from placet.errors import NotFound, PlacetError
from placet.models import Hold, Object

if TYPE_CHECKING:
    from placet.sync import Placet

# A worker that is there takes a message on in a fraction of this.
UNCLAIMED_AFTER_S = 5.0
# For the request that is under way at the end.
LOOK_ENDS_WITHIN_S = 1.0


@contextmanager
def telling_if_unclaimed(placet: Placet, conversation_id: str, message_id: str) -> Iterator[None]:
    """Within this context a line says, once, why the agent has not begun with a message for some seconds."""
    timer = threading.Timer(UNCLAIMED_AFTER_S, _tell, (placet, conversation_id, message_id))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join(LOOK_ENDS_WITHIN_S)


def _tell(placet: Placet, conversation_id: str, message_id: str) -> None:
    # The stream tells of an outage, and the client may be closed meanwhile.
    with suppress(PlacetError, RuntimeError, CancelledError):
        turn = turn_of(placet, conversation_id, message_id)
        if turn["status"] == "waiting" and not turn["claims"]:
            tell(_cause(placet, conversation_id, message_id, str(turn["agent"])))


def _cause(placet: Placet, conversation_id: str, message_id: str, agent: str) -> str:
    """What the message waits for."""
    with suppress(NotFound):
        if placet.executions.get(conversation_id).state == "paused":
            return f"the conversation is paused; to go on: placet resume {conversation_id}"
        first = next(iter(placet.conversations.under_way(conversation_id)), message_id)
        if first != message_id:
            earlier = turn_of(placet, conversation_id, first)
            if earlier["claims"]:
                return _of_earlier(placet, conversation_id, agent, earlier)
    return (
        f"no worker of {agent} has taken the message on yet: is one running (placet agent run MODULE), and has it a "
        "place free (--concurrency)?"
    )


def _of_earlier(placet: Placet, conversation_id: str, agent: str, turn: Object) -> str:
    """What the turn of an earlier message waits for."""
    said = f"the message waits for the answer to an earlier one of {turn['sent_by']}"
    holds = every(lambda cursor: placet.holds.list(agent=agent, cursor=cursor))
    waits = next((hold for hold in holds if hold.execution_id == conversation_id), None)
    return said if waits is None else f"{said}, which waits for a person: {_command(waits)}"


def _command(hold: Hold) -> str:
    return f"placet {'approve' if hold.call_id else 'answer'} {hold.hold_id}"
