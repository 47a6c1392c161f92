"""What became of a proposal that made no call, on both databases."""

from __future__ import annotations

from projections.queries.refused_proposals import RefusedProposal, refused_proposal
from projections.queries.views import open_views
from schemas.events.executions import CommandRefused
from schemas.refusals import Refusal
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder, key_of, started

CLOSED = "the execution has ended"


def refused(call_id: str, command: str = "ProposeToolCall", detail: str = CLOSED) -> CommandRefused:
    return CommandRefused(
        code=Refusal.EXECUTION_CLOSED, command=command, subject_id=call_id, detail=detail, by="bot"
    )


def test_last_refusal_of_the_proposal_in_this_run_is_found(database_url: str, filler: Filler) -> None:
    builder = LogBuilder(2).claim_all()
    key, other = key_of("run-1"), key_of("run-2")
    builder.append(key, [started()])
    builder.append(other, [started()])
    for call_id, detail in (("late", "the first time"), ("late", CLOSED), ("another", "of another call")):
        builder.append(key, [refused(call_id, detail=detail)])
    builder.append(key, [refused("grant", "ConsumeGrant")])
    builder.append(other, [refused("elsewhere")])
    filler.fill(builder)
    views = open_views(database_url)

    def found(call_id: str, tenant: str = "acme") -> RefusedProposal | None:
        return views.read_now(lambda now: refused_proposal(now, tenant, "main", "run-1", call_id))[0]

    try:
        late = found("late")
        assert late is not None
        assert (late.code, late.detail) == ("execution_closed", CLOSED)
        assert late.at_ms > 0
        assert [found(name) for name in ("never", "grant", "elsewhere")] == [None] * 3
        assert found("late", "other") is None
    finally:
        views.close()
