"""How people decide, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from projections.queries.reviewers import ProbeCounts, ReviewerRow, probe_counts, reviewers
from projections.queries.views import Views, open_views
from projections.tables.star import QUICK_MS
from schemas.events.calls import ProbeEnded
from schemas.probe import Probe, ProbeAnswer, answers_to_text, probe_to_text
from tests.projections.filling import Filler
from tests.projections.histories import START_MS, LogBuilder, decided, held, judged, key_of, proposed, started

OURS = ("acme", "main")
MARK = probe_to_text(Probe("olga", "bad"))


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


def test_answers_to_planted_calls_are_counted_for_each_who_gave_one(
    database_url: str, filler: Filler
) -> None:
    builder = LogBuilder(4).claim_all()
    votes = (("ann", False), ("bob", True)), (("ann", True),), ()
    for number, answers in enumerate(votes):
        key = key_of(f"run-{number}")
        call = proposed("c")
        hold = held(key, call)
        said = answers_to_text(tuple(ProbeAnswer(by, "", "approve", caught) for by, caught in answers))
        builder.append(key, [started()])
        builder.append(key, [call.model_copy(update={"probe": MARK}), judged(call), hold])
        end = ProbeEnded(
            call_id="c",
            hold_id=hold.hold_id,
            revision=1,
            agent=call.agent,
            tool=call.tool,
            result="caught",
            planted_by="olga",
            note="bad",
            wrong="[]",
            answers=said,
        )
        votes_of = [decided(hold, "approve", by=by, resolves=False) for by, _ in answers]
        builder.append(key, [*votes_of, decided(hold, "reject", by="eve"), end])
    filler.fill(builder)
    opened = open_views(database_url)
    try:
        found = opened.read_now(lambda now: probe_counts(now, *OURS, START_MS))[0]
        later = opened.read_now(lambda now: probe_counts(now, *OURS, START_MS + 86_400_000))[0]
        shown = opened.read_now(
            lambda now: now.execute(
                f"SELECT subject, probes, probes_missed FROM {now.dialect.prefix}reviewers ORDER BY subject",
                (),
            )
        )[0]
    finally:
        opened.close()

    assert found == {"ann": ProbeCounts(2, 1), "bob": ProbeCounts(1, 0)}
    assert later == {}
    assert [tuple(row) for row in shown] == [("ann", 2, 1), ("bob", 1, 0), ("eve", 0, 0)]


def test_reviewers_since_later_are_none(views: Views) -> None:
    found: list[ReviewerRow] = views.read_now(lambda now: reviewers(now, *OURS, START_MS + 86_400_000))[0]

    assert found == []
