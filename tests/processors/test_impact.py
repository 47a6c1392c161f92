"""A report of harm counts for the class of its call, mostly long after the call has ended."""

from __future__ import annotations

import random

import pytest

from schemas.events.calls import ImpactReported
from schemas.trust import ClassFact, ClassPart, TrustPart
from schemas.trust_score import Placed, posterior
from services.processors.fold import PartitionFold
from tests.processors.history import CLASSES, START_MS, History, OpenCall

TOPIC = "topic-id"
PART = ("acme", "main", "billing-bot", "send_money")


def impact(call: OpenCall, by: str = "rita", trust_class: str | None = None) -> ImpactReported:
    return ImpactReported(
        call_id=call.call_id,
        revision=call.revision,
        agent=call.part[2],
        tool=call.part[3],
        trust_class=call.trust_class if trust_class is None else trust_class,
        reason="paid twice",
        by=by,
    )


def ended() -> tuple[History, OpenCall]:
    """The history of a call that succeeded."""
    history = History(0, random.Random(1))
    history.claim()
    call = history.propose(PART)
    history.decide(call, "approve")
    history.end(call, "successes")
    return history, call


def facts_of(history: History) -> list[ClassFact]:
    fold = PartitionFold(0, TOPIC)
    for raw in history.raws():
        fold.apply(raw)
    return [fact for part in fold.parts if isinstance(part, ClassPart) for fact in part.facts]


def test_report_counts_for_the_class_after_the_call_has_ended() -> None:
    history, call = ended()
    offset = history.add(call.key, impact(call).model_copy(update={"values": ("aa",)}))

    *_, fact = facts_of(history)

    assert (fact.offset, fact.kind, fact.by, fact.requester) == (offset, "impact", ("rita",), "")
    assert fact.values == ("aa",)


def test_report_counts_from_its_own_fields_where_the_call_was_never_read() -> None:
    history = History(0, random.Random(1))
    history.claim()
    call = OpenCall(PART, b"acme/main/long-ago", "c", trust_class=CLASSES[0])
    history.add(call.key, impact(call))

    (fact,) = facts_of(history)

    assert fact.kind == "impact"


def test_report_of_a_call_under_way_leaves_it_open() -> None:
    history = History(0, random.Random(1))
    history.claim()
    call = history.propose(PART)
    history.add(call.key, impact(call))
    history.end(call, "failures")
    assert [fact.kind for fact in facts_of(history)] == ["impact", "failure"]


def test_report_without_a_class_counts_for_nothing() -> None:
    history, call = ended()
    history.add(call.key, impact(call, trust_class=""))
    assert [fact.kind for fact in facts_of(history)] == ["approval"]


def test_report_by_a_writer_that_lost_its_claim_counts_for_nothing() -> None:
    history, call = ended()
    lost = history.term
    history.claim()
    history.add(call.key, impact(call), lost)
    assert [fact.kind for fact in facts_of(history)] == ["approval"]


def test_report_changes_no_count_of_the_tool() -> None:
    history, call = ended()
    before = counted(history)
    history.add(call.key, impact(call))
    assert counted(history) == before


def counted(history: History) -> list[int]:
    fold = PartitionFold(0, TOPIC)
    for raw in history.raws():
        fold.apply(raw)
    return [part.evidence for part in fold.parts if isinstance(part, TrustPart)]


@pytest.mark.parametrize("reports", [1, 2])
def test_report_lowers_the_score_and_what_raised_it_counts_no_more(reports: int) -> None:
    approvals = [ClassFact(offset=n, at_ms=START_MS, kind="approval", by=("rita",)) for n in range(40)]
    harm = [ClassFact(offset=40 + n, at_ms=START_MS, kind="impact", by=(f"r{n}",)) for n in range(reports)]

    before = posterior([Placed(0, fact) for fact in approvals], START_MS)
    after = posterior([Placed(0, fact) for fact in (*approvals, *harm)], START_MS)

    assert (before.raising, before.lowering) == (40.0, 0.0)
    assert (after.raising, after.lowering) == (0.0, float(reports))
    assert after.lower_bound < 0.05 < 0.9 < before.lower_bound
