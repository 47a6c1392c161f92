"""How the errors of a call end, where its caller may be gone already."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc
import pytest

from gateway.problems import Problem
from gateway.rpc import guard
from gateway.rpc.statuses import DETAIL_MAX_BYTES, sendable
from gateway.rpc.upstream import Refused
from schemas.refusals import Refusal

WITHIN_S = 60.0


class Call:
    """A call of which grpc has not heard yet whether its caller is gone."""

    aborted: str = ""
    code: grpc.StatusCode | None = None

    def done(self) -> bool:
        return False

    def set_trailing_metadata(self, metadata: Any) -> None: ...

    async def abort(self, code: grpc.StatusCode, detail: str) -> None:
        self.aborted, self.code = detail, code


def failing(call: Call, error: Exception) -> asyncio.Task[None]:
    """A call's method that fails."""

    async def answer() -> None:
        async with guard._answering("Watch", call):  # type: ignore[arg-type]
            raise error

    return asyncio.create_task(answer())


async def test_caller_that_was_gone_when_something_was_sent_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its stream was reset: grpc tells the sender first, and cancels the call afterwards."""
    call = Call()
    answering = failing(call, grpc.aio.InternalError("Failed grpc_call_start_batch"))
    await asyncio.sleep(0)
    assert not answering.done()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert (caplog.records, call.aborted) == ([], "")


async def test_failure_to_send_to_a_caller_that_is_there_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "GONE_WITHIN_S", 0.01)
    with pytest.raises(grpc.aio.InternalError, match="start_batch"):
        async with asyncio.timeout(WITHIN_S):
            await failing(Call(), grpc.aio.InternalError("Failed grpc_call_start_batch"))


async def test_anything_unexpected_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    call = Call()
    with caplog.at_level(logging.ERROR):
        await failing(call, KeyError("GB29"))
    assert [record.getMessage() for record in caplog.records] == ["Watch failed"]
    assert call.aborted.startswith("internal: something unexpected")
    assert "GB29" not in call.aborted


async def test_method_that_is_not_there_is_unimplemented_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = Call()
    await failing(call, NotImplementedError("Method not implemented!"))
    assert call.code is grpc.StatusCode.UNIMPLEMENTED
    assert caplog.records == []


LONG = "x" * 20_000


@pytest.mark.parametrize(
    "error",
    [
        Problem(Refusal.INVALID, f"{LONG}: remove it"),
        Refused(grpc.StatusCode.INVALID_ARGUMENT, f"invalid: {LONG}: remove it", ()),
    ],
    ids=["of this role", "of the gateway"],
)
async def test_refusal_that_quotes_a_long_text_is_cut(error: Exception) -> None:
    call = Call()
    await failing(call, error)
    assert call.code is grpc.StatusCode.INVALID_ARGUMENT
    assert call.aborted.startswith("invalid: xxx")
    assert call.aborted.endswith("x…")
    assert len(call.aborted) <= DETAIL_MAX_BYTES


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("x" * 1_024, "x" * 1_024),
        ("x" * 1_025, "x" * 1_015 + "…"),
        ("%" * 341, "%" * 341),
        ("%" * 342, "%" * 338 + "…"),
        ("Ж" * 170, "Ж" * 170),
        ("Ж" * 171, "Ж" * 169 + "…"),
        ("🙂" * 86, "🙂" * 84 + "…"),
    ],
    ids=lambda text: f"{text[0]} {len(text)}",
)
def test_detail_is_measured_as_it_is_sent(detail: str, expected: str) -> None:
    assert sendable(detail) == expected
