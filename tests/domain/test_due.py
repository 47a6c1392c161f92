"""When a call is due next, in each of its states."""

from __future__ import annotations

from typing import get_args

import pytest

from services.domain.execution.deadlines import call_due, is_reserving
from services.domain.state import Call, CallStatus, Reservation

GRANT_ENDS, RUN_ENDS, LEASE_ENDS, ANSWER_BY = 1_000, 3_000, 2_000, 4_000
ASKED = Reservation("reservation", "rule", 1, ANSWER_BY)
DUE = {"released": GRANT_ENDS, "consumed": LEASE_ENDS, "proposed": ANSWER_BY}


def call(
    status: CallStatus, reservation: Reservation | None = ASKED, lease_until_ms: int = LEASE_ENDS
) -> Call:
    """A call with every moment that it could be due at, whatever its state."""
    return Call(
        call_id="c",
        revision=1,
        agent="bot",
        tool="pay",
        tool_version="1",
        arguments="{}",
        digest="",
        context="{}",
        claims="{}",
        reason="",
        requesters=("bot",),
        proposal_digest="",
        status=status,
        grant_expires_at_ms=GRANT_ENDS,
        run_deadline_at_ms=RUN_ENDS,
        lease_until_ms=lease_until_ms,
        reservation=reservation,
    )


@pytest.mark.parametrize("status", get_args(CallStatus))
def test_call_is_due_only_while_something_of_it_runs_out(status: CallStatus) -> None:
    assert call_due(call(status)) == DUE.get(status)
    assert is_reserving(call(status)) == (status == "proposed")


def test_call_that_was_consumed_before_there_were_leases_is_due_at_its_run_deadline() -> None:
    assert call_due(call("consumed", lease_until_ms=0)) == RUN_ENDS


@pytest.mark.parametrize(
    "reservation", [None, Reservation("reservation", "rule", 1, ANSWER_BY, settled=True)]
)
def test_call_that_waits_for_no_use_of_a_rule_is_not_due(reservation: Reservation | None) -> None:
    assert call_due(call("proposed", reservation)) is None
