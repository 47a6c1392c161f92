"""The answers of the tool `human_input`, in the form of its earlier implementations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.resources.base import Resource
from schemas.limits import TASK_TIMEOUT_S

WAITING = "waiting_for_human"


class StringValue(Resource):
    """A text, as protobuf's JSON form of a value has it."""

    stringValue: str


class StartedFields(Resource):
    """What the tool tells its caller at once: `status` is `waiting_for_human`."""

    status: StringValue
    task_id: StringValue


class StartedStruct(Resource):
    """The fields of a protobuf Struct."""

    fields: StartedFields


class StartedValue(Resource):
    """A protobuf Value that is a Struct."""

    structValue: StartedStruct


class ToolStarted(Resource):
    """The tool has asked a person; the task id is the id of the request."""

    result: StartedValue


# One model for both statuses of HTTP: clients of openapi-generator read any answer by that of the first.
class HumanInput(Resource):
    """A task: a person's answer, or that nobody has answered, or how it ended without one."""

    response: Annotated[
        Any, Field(description="The answer, or the default that took effect; null and missing without.")
    ] = None
    status: Annotated[
        Literal["waiting_for_human", "rejected", "expired", "cancelled"] | None,
        Field(description="Why nobody's answer is there; missing if it is."),
    ] = None
    feedback: Annotated[str | None, Field(description="Why it was rejected.")] = None
    task_id: Annotated[str | None, Field(description="Missing once it is closed.")] = None


def question_of(prompt: str) -> dict[str, Any]:
    """The body of the request that a prompt becomes."""
    return {"kind": "clarification", "question": prompt, "timeout_seconds": TASK_TIMEOUT_S}


def answer_of(response: Any, feedback: str) -> dict[str, Any]:
    """The body of the decision that an answer becomes: null rejects the question."""
    if response is None:
        return {"decision": "reject", "feedback": feedback}
    return {"decision": "respond", "value": response, "feedback": feedback}


def unanswered_status(status: str, decision: str | None) -> str | None:
    """How a closed question ended without an answer; None if it has one.

    Args:
        status: the status of its hold.
        decision: the decision that closed it.
    """
    if status != "resolved":
        return status
    return "rejected" if decision == "reject" else None


def default_taken(request: Mapping[str, Any]) -> Any:
    """The default that took effect for a question, as nobody answered in time; None if there is none."""
    return request.get("response") if request["status"] == "expired" else None


def started(task_id: str) -> dict[str, Any]:
    """The JSON of `ToolStarted`."""
    fields = {"status": {"stringValue": WAITING}, "task_id": {"stringValue": task_id}}
    return {"result": {"structValue": {"fields": fields}}}
