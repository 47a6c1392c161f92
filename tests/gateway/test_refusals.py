"""How a refusal of the decider is told to whoever asked."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.live.outcome import Outcome, Refused
from gateway.operations.plan import refusal_of
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
