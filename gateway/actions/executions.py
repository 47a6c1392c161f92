"""The actions on an execution: each verb with its body, command and route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from gateway.actions.verb import Verb
from gateway.bodies import B, Body, Text
from gateway.problems import Problem
from gateway.strictjson import canonical_text
from schemas import commands as k
from schemas.message import Message
from schemas.refusals import Refusal


class PauseExecution(Body):
    """Pause the execution: no call runs, and no new one is judged, until it is resumed."""

    reason: Text = ""


class ResumeExecution(Body):
    """Resume the execution after a pause."""

    feedback: Text = ""


class CancelExecution(Body):
    """End the execution without a result."""

    reason: Text = ""


class CompleteExecution(Body):
    """End the execution with its result."""

    result: Any = Field(default=None, description="The result of the execution: any JSON.")


class FailExecution(Body):
    """End the execution with an error. `reason` is another name for `error`: give one of the two."""

    error: Text = ""
    reason: Text = ""


@dataclass(frozen=True, kw_only=True)
class ExecutionVerb(Verb[B]):
    """An action on an execution; with `steers`, people may take it too, and not only the execution's agent."""

    steers: bool = False


def _fail(_: str, body: FailExecution) -> Message:
    if body.error and body.reason and body.error != body.reason:
        raise Problem(Refusal.INVALID, "`error` and `reason` have the same meaning: leave one of them out")
    return k.FailExecution(error=body.error or body.reason)


# In the order of their routes.
VERBS: tuple[ExecutionVerb[Any], ...] = (
    ExecutionVerb(
        name="pause",
        operation="pauseExecution",
        says="Pause the execution: no call runs, and no new one is judged, until it is resumed.",
        body=PauseExecution,
        command=lambda _, body: k.PauseExecution(reason=body.reason),
        steers=True,
    ),
    ExecutionVerb(
        name="resume",
        operation="resumeExecution",
        says="Resume the execution after a pause.",
        body=ResumeExecution,
        command=lambda _, body: k.ResumeExecution(feedback=body.feedback),
        steers=True,
    ),
    ExecutionVerb(
        name="cancel",
        operation="cancelExecution",
        says="End the execution without a result.",
        body=CancelExecution,
        command=lambda _, body: k.CancelExecution(reason=body.reason),
        steers=True,
    ),
    ExecutionVerb(
        name="complete",
        operation="completeExecution",
        says="End the execution with its result.",
        body=CompleteExecution,
        command=lambda _, body: k.CompleteExecution(result=canonical_text(body.result, "result")),
    ),
    ExecutionVerb(
        name="fail",
        operation="failExecution",
        says="End the execution with an error.",
        body=FailExecution,
        command=_fail,
    ),
)
