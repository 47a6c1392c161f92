"""How people decide, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from projections.queries.reviewers import ReviewerRow, reviewers
from projections.queries.views import Views, open_views
from projections.tables.star import QUICK_MS
from tests.projections.filling import Filler
from tests.projections.histories import START_MS, LogBuilder, decided, held, judged, key_of, proposed, started

OURS = ("acme", "main")


@pytest.fixture
def views(database_url: str, filler: Filler) -> Iterator[Views]:
    builder = LogBuilder(4).claim_all()
    for tenant in ("acme", "other"):
        for number, (decision, by, dwell_ms) in enumerate(
            (
                ("approve", "ann", QUICK_MS - 1),
                ("approve", "ann", QUICK_MS),
                ("approve", "ann", None),
                ("edit", "ann", 9_000),
                ("reject", "bob", 1),
                ("respond", "bob", None),
            )
        ):
            key = key_of(f"run-{number}", tenant)
            call = proposed("c")
            hold = held(key, call)
            builder.append(key, [started()])
            builder.append(key, [call, judged(call), hold])
            edited = '{"amount":1}' if decision == "edit" else None
            builder.append(key, [decided(hold, decision, by=by, dwell_ms=dwell_ms, edited_arguments=edited)])
    filler.fill(builder)
    opened = open_views(database_url)
    yield opened
    opened.close()


def test_reviewers_are_counted_by_decision_and_measured(views: Views) -> None:
    ann, bob = views.read_now(lambda now: reviewers(now, *OURS, START_MS))[0]

    assert (ann.reviewer, ann.approved, ann.edited, ann.rejected, ann.answered) == ("ann", 3, 1, 0, 0)
    assert (ann.measured, ann.quick) == (2, 1)
    assert ann.dwell_ms == pytest.approx((QUICK_MS - 1 + QUICK_MS + 9_000) / 3)
    assert ann.wait_ms > 0
    assert (bob.reviewer, bob.approved, bob.rejected, bob.answered) == ("bob", 0, 1, 1)
    assert (bob.measured, bob.quick, bob.dwell_ms) == (0, 0, 1)


def test_reviewers_since_later_are_none(views: Views) -> None:
    found: list[ReviewerRow] = views.read_now(lambda now: reviewers(now, *OURS, START_MS + 86_400_000))[0]

    assert found == []
