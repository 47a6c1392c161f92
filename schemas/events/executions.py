"""Facts about an execution as a whole, and about commands that came to nothing."""

from schemas.message import Long, Message
from schemas.refusals import Refusal


class ExecutionStarted(Message):
    """An agent's run began."""

    agent: str
    user: str
    workspace: str
    request: str
    context: str
    by: str


class ExecutionPaused(Message):
    """The run was stopped: nothing is judged or consumed until it is resumed.

    `agent` is the agent whose own token stopped it. None is a person or a service (and every pause of before the
    field was there): such a pause no agent's token may end.
    """

    reason: str
    by: str
    agent: str | None = None


class ExecutionResumed(Message):
    """The run goes on."""

    feedback: str
    by: str


class ExecutionCompleted(Message):
    """The run ended with a result (JSON)."""

    result: str
    by: str


class ExecutionFailed(Message):
    """The run ended with an error."""

    error: str
    by: str


class ExecutionCancelled(Message):
    """The run was ended without a result."""

    reason: str
    by: str


class CommandRefused(Message):
    """A command was refused. Nothing changed but the record of it.

    `subject_id` is the call or hold that it was about, if any.
    """

    code: Refusal
    command: str
    subject_id: str
    detail: str
    by: str


class CommandAbandoned(Message):
    """A command ended who tried it three times and was given up; what it was about stays as it was.

    A writer counts as ended where it ended while it tried the command alone, and so does each trial in a child of a
    writer's process. `attempts` says how many there were, and `trials` how many of them were the last writer's
    trials, which leave nothing else in the log; −1 where a version wrote it that did not say.
    """

    command: str
    command_offset: Long
    attempts: Long
    trials: Long = -1


def is_reuse_refusal(body: Message) -> bool:
    """Whether an event refuses a command whose id was used for another body.

    It is the answer to that body only: what the id stands for is told by the events of its first body.
    """
    # No class is derived from it, and this is asked of every event.
    return type(body) is CommandRefused and body.code is Refusal.IDEMPOTENCY_KEY_REUSED


EXECUTION_EVENTS: tuple[type[Message], ...] = (
    ExecutionStarted,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionCompleted,
    ExecutionFailed,
    ExecutionCancelled,
    CommandRefused,
    CommandAbandoned,
)
