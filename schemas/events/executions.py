"""Facts about an execution as a whole, and about refused and abandoned commands."""

from schemas.message import Long, Message
from schemas.refusals import Refusal


class ExecutionStarted(Message):
    """An agent's run began. With `idle_ms` it ends by itself once nothing in it has been open for so long.

    `probe` is JSON of `schemas.probe.Probe` if an operator opened the run for a call that is planted; else None.
    """

    agent: str
    user: str
    workspace: str
    request: str
    context: str
    by: str
    idle_ms: Long | None = None
    probe: str | None = None


class ExecutionPaused(Message):
    """The run was stopped: nothing is judged or consumed until it is resumed.

    `agent` is the agent whose own token paused it. None means a person or a service (or a pause recorded before this
    field existed); no agent's token can end such a pause.
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

    `subject_id` is the call or hold that the command was about, if any.
    """

    code: Refusal
    command: str
    subject_id: str
    detail: str
    by: str


class CommandAbandoned(Message):
    """A command ended who tried it three times and was given up; what it was about stays as it was.

    An attempt counts if a writer, or a trial in a child of a writer's process, ended while it tried the command
    alone. `attempts` is the number of attempts. `trials` is the number of them that were the last writer's trials,
    which leave nothing else in the log; −1 if a version without this field wrote the event.
    """

    command: str
    command_offset: Long
    attempts: Long
    trials: Long = -1


def is_reuse_refusal(body: Message) -> bool:
    """Returns True if an event refuses a command whose id was used for another body.

    It answers that body only: the events of the first body are the command id's result.
    """
    # `type is` suffices, as the class has no subclasses, and it is faster: this runs for every event.
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
