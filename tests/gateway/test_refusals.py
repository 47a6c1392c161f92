"""How a refusal of the decider is told to whoever asked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from gateway.bodies import RunTool, read_body
from gateway.live.outcome import Outcome, Refused
from gateway.operations.plan import refusal_of
from gateway.problems import MESSAGE_MAX_BYTES, PATH_MAX_BYTES, Problem, invalid
from gateway.sockets.message_fields import check_fields
from schemas.refusals import Refusal


def problem_document(code: Refusal, detail: str) -> dict[str, Any]:
    problem = refusal_of(Outcome("digest", b"acme/main/x", Refused(code, detail)))
    assert problem is not None
    return problem.document()


@pytest.mark.parametrize(
    ("detail", "path", "message"),
    [
        (
            "$.lines[1].amount: '2' is not of type 'number'",
            "arguments.lines[1].amount",
            "'2' is not of type 'number'",
        ),
        ("$: 'to: whom' is a required property", "arguments", "'to: whom' is a required property"),
    ],
)
def test_arguments_that_do_not_fit_are_told_with_path_and_reason(
    detail: str, path: str, message: str
) -> None:
    document = problem_document(Refusal.INVALID_ARGUMENTS, detail)

    assert (document["status"], document["detail"]) == (422, detail)
    assert document["errors"] == [{"path": path, "code": "schema", "message": message}]


def test_quota_says_when_to_come_back() -> None:
    document = problem_document(Refusal.QUOTA, "200 calls are open")

    assert (document["status"], document["retry_after"]) == (429, 1)


@pytest.mark.parametrize("name", ["x" * 20_000, "Ж" * 20_000], ids=["Latin", "Cyrillic"])
def test_long_name_of_a_field_is_cut_where_it_is_quoted(name: str) -> None:
    body = {"name": "human_input", "arguments": {"prompt": "?", name: 1}}
    for check in (lambda: read_body(RunTool, body), lambda: check_fields({"type": "ping", name: 1}, "ping")):
        with pytest.raises(Problem) as caught:
            check()
        (error,) = caught.value.fields["errors"]
        assert len(error["path"].encode()) <= PATH_MAX_BYTES
        assert caught.value.detail == f"{error['path']}: this field is unknown; remove it"


def test_long_value_is_cut_where_it_is_quoted() -> None:
    class Quoting(BaseModel):
        value: str

        @field_validator("value")
        @classmethod
        def _refuse(cls, value: str) -> str:
            raise ValueError(value)

    with pytest.raises(ValidationError) as caught:
        Quoting(value="x" * 20_000)
    problem = invalid(caught.value)
    (error,) = problem.fields["errors"]
    assert len(error["message"].encode()) == MESSAGE_MAX_BYTES
    assert len(problem.detail) < 2 * MESSAGE_MAX_BYTES
