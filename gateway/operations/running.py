"""Checks that an attempt holds a call: only that attempt may run it, and only until its lease or the call ends."""

from __future__ import annotations

from collections.abc import Callable

from gateway.problems import Problem
from projections.tables.calls import CallRow
from schemas.refusals import Refusal

ENDED = frozenset({"succeeded", "failed"})


def check_has(call: CallRow, attempt_id: str, now_ms: Callable[[], int], ended: Refusal) -> None:
    """Refuse an attempt that does not hold a call, or holds it no longer.

    Args:
        call: the call as it is now; the answer that the attempt received may be older.
        attempt_id: the attempt's.
        now_ms: the log's time, by which leases end.
        ended: the refusal for a call that has its result.

    Raises:
        Problem: 409, with the code of the actual state; 503, the log's time is not known.
    """
    status = call["status"]
    if status == "consumed" and call["attempt_id"] != attempt_id:
        raise Problem(Refusal.ALREADY_CONSUMED, "another attempt runs this call")
    if status == "consumed":
        if now_ms() >= _over_ms(call):
            raise Problem(
                Refusal.NOT_RELEASED, "this attempt's lease has ended: it may no longer run the call"
            )
        return
    if status in ENDED:
        raise Problem(ended, f"the call has ended: {status}")
    code = Refusal.EXPIRED if status == "expired" else Refusal.NOT_RELEASED
    raise Problem(code, f"this attempt no longer holds the call: it is {status}")


def _over_ms(call: CallRow) -> int:
    """The time until which the consuming attempt may run: its run deadline or, if earlier, the end of its lease."""
    ends: list[int] = [at for at in (call["lease_until_ms"], call["run_deadline_at_ms"]) if at is not None]
    return min(ends)
