"""`evolve`: folds an event into an execution, with the folds of the modules that decide the events."""

from msgspec.structs import replace

from schemas.events import executions as x
from schemas.message import Message
from services.domain.execution import (
    calls,
    endings,
    holds,
    impact,
    joining,
    opening,
    requests,
    reservations,
    results,
    secrets,
    steering,
    turns,
    verdicts,
)
from services.domain.execution.digests import start_digest
from services.domain.execution.folding import Folds, with_idle_end
from services.domain.state import Execution
from services.domain.untrusted import NO_WORDS


def start(key: tuple[str, str, str], event: x.ExecutionStarted, at_ms: int = 0) -> Execution:
    """The execution that an ExecutionStarted creates."""
    tenant, project, execution_id = key
    state = Execution(
        tenant=tenant,
        project=project,
        execution_id=execution_id,
        agent=event.agent,
        user=event.user,
        workspace=event.workspace,
        request=event.request,
        context=event.context,
        start_digest=start_digest(event),
        started_by=event.by,
        idle_ms=event.idle_ms,
        opened_for=event.probe or "",
    )
    return with_idle_end(state, at_ms)


def evolve(state: Execution, event: Message, at_ms: int) -> Execution:
    """The state after an event; refusals and other records without effect change nothing."""
    fold = _FOLDS.get(type(event))
    if fold is None:
        return state
    after = with_idle_end(fold(state, event, at_ms), at_ms)
    # No call is judged any more.
    return replace(after, words=NO_WORDS) if after.closed and after.words is not NO_WORDS else after


_FOLDS: Folds = {
    **steering.FOLDS,
    **calls.FOLDS,
    **results.FOLDS,
    **impact.FOLDS,
    **verdicts.FOLDS,
    **requests.FOLDS,
    **opening.FOLDS,
    **endings.FOLDS,
    **holds.FOLDS,
    **reservations.FOLDS,
    **secrets.FOLDS,
    **joining.FOLDS,
    **turns.FOLDS,
}
