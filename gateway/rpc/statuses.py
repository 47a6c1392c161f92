"""Refusals as gRPC statuses: the code that clients of gRPC expect, with the refusal's own code beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import grpc
from grpc import StatusCode

from gateway.problems import ELLIPSIS, Problem
from schemas.refusals import Refusal

# The trailing metadata of a refusal: its code, and after how many seconds to try again.
CODE, RETRY_AFTER = "placet-code", "retry-after"
Metadata = tuple[tuple[str, str], ...]
# Of the sentence as it is sent. All metadata of an answer together may have 8 KiB by the default of clients; of more
# they tell another status, and nothing of what was said.
DETAIL_MAX_BYTES = 1_024

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


def trailing(problem: Mapping[str, Any]) -> Metadata:
    """The trailing metadata of a refusal, from its problem document."""
    wait = problem.get("retry_after")
    retry = () if wait is None else ((RETRY_AFTER, str(wait)),)
    return ((CODE, str(problem.get("code", ""))), *retry)


async def refuse(context: grpc.aio.ServicerContext[Any, Any], problem: Problem) -> NoReturn:
    """End a call with a refusal.

    Raises:
        AbortError: always; it ends the call.
    """
    detail = f"{problem.code}: {problem.detail}"
    await end(context, status_of(problem.code), detail, trailing(problem.document()))


async def end(
    context: grpc.aio.ServicerContext[Any, Any], status: StatusCode, detail: str, metadata: Metadata
) -> NoReturn:
    """End a call with a status, whatever its detail quotes.

    Raises:
        AbortError: always; it ends the call.
    """
    context.set_trailing_metadata(metadata)
    await context.abort(status, sendable(detail))


def sendable(detail: str) -> str:
    """Return a detail, cut with an ellipsis if it is over `DETAIL_MAX_BYTES` as `grpc-message`."""
    size = fits = 0
    for place, character in enumerate(detail, 1):
        size += _sent_bytes(character)
        if size > DETAIL_MAX_BYTES:
            return detail[:fits] + ELLIPSIS
        if size <= DETAIL_MAX_BYTES - _sent_bytes(ELLIPSIS):
            fits = place
    return detail


def _sent_bytes(character: str) -> int:
    """Of a character, percent-encoded: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, Responses."""
    return 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())
