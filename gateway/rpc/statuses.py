"""Refusals as gRPC statuses: the code that clients of gRPC expect, with the refusal's own code beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
from grpc import StatusCode

from gateway.problems import Problem
from schemas.refusals import Refusal

# The trailing metadata of a refusal: its code, and after how many seconds to try again.
CODE, RETRY_AFTER = "placet-code", "retry-after"

STATUSES: Mapping[Refusal, StatusCode] = {
    Refusal.UNAUTHENTICATED: StatusCode.UNAUTHENTICATED,
    Refusal.NOT_FOUND: StatusCode.NOT_FOUND,
    Refusal.NOT_AUTHORISED: StatusCode.PERMISSION_DENIED,
    Refusal.OWN_REQUEST: StatusCode.PERMISSION_DENIED,
    Refusal.FORBIDDEN_ROLE: StatusCode.PERMISSION_DENIED,
    Refusal.TOO_LARGE: StatusCode.INVALID_ARGUMENT,
    Refusal.MALFORMED: StatusCode.INVALID_ARGUMENT,
    Refusal.INVALID: StatusCode.INVALID_ARGUMENT,
    Refusal.INVALID_ARGUMENTS: StatusCode.INVALID_ARGUMENT,
    Refusal.UNKNOWN_OPTION: StatusCode.INVALID_ARGUMENT,
    Refusal.ID_REUSED: StatusCode.ALREADY_EXISTS,
    Refusal.IDEMPOTENCY_KEY_REUSED: StatusCode.ALREADY_EXISTS,
    Refusal.QUOTA: StatusCode.RESOURCE_EXHAUSTED,
    Refusal.UNAVAILABLE: StatusCode.UNAVAILABLE,
}


def status_of(code: str, http: int = 500) -> StatusCode:
    """The gRPC status of a refusal's code; if it is none of ours, by whose fault the HTTP status says it is.

    What a person or another attempt has already done is FAILED_PRECONDITION: trying again changes nothing.
    """
    try:
        return STATUSES.get(Refusal(code), StatusCode.FAILED_PRECONDITION)
    except ValueError:
        return StatusCode.INVALID_ARGUMENT if 400 <= http < 500 else StatusCode.INTERNAL


def trailing(problem: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The trailing metadata of a refusal, from its problem document."""
    wait = problem.get("retry_after")
    retry = () if wait is None else ((RETRY_AFTER, str(wait)),)
    return ((CODE, str(problem.get("code", ""))), *retry)


async def refuse(context: grpc.aio.ServicerContext[Any, Any], problem: Problem) -> None:
    """End a call with a refusal.

    Raises:
        AbortError: always; it ends the call.
    """
    context.set_trailing_metadata(trailing(problem.document()))
    await context.abort(status_of(problem.code), f"{problem.code}: {problem.detail}")
