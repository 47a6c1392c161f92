"""The fold of one partition: what it counts, and that taking it up anywhere gives the same."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log.errors import LogChanged
from schemas.adaptive import AdaptiveOutcome, outcome_to_text
from schemas.call_history import CallHistory, history_to_text
from schemas.ids import execution_key
from schemas.probe import Probe, probe_to_text
from schemas.record import RawRecord
from schemas.trust import UNCLASSED, AnyPart, ClassPart, TrustCheckpoint, TrustPart
from services.domain.trust.counting import KINDS
from services.processors.errors import PartsNotWhole, PositionLost
from services.processors.fold import PartitionFold, identity
from services.processors.meters import Weighed
from services.processors.trust import _check_ends
from tests.processors.history import History, OpenCall, PartKey, decision_on, proposal, verdict

PLACE = ("acme", "main", "bot", "pay")
TOPIC = "topic-id"
SEEDS = st.integers(0, 2**32)


def history_of(seed: int, steps: int = 120) -> History:
    return History(0, random.Random(seed)).live(steps)


def folded(raws: list[RawRecord], fold: PartitionFold | None = None) -> PartitionFold:
    fold = fold or PartitionFold(0, TOPIC)
    for raw in raws:
        fold.apply(raw)
    return fold


def facts(parts: list[AnyPart]) -> dict[tuple[PartKey, str], list[tuple[int, str]]]:
    return {
        ((part.tenant, part.project, part.agent, part.tool), part.trust_class): [
            (fact.offset, fact.kind) for fact in part.facts
        ]
        for part in parts
        if isinstance(part, ClassPart)
    }


def counts(parts: list[AnyPart]) -> dict[PartKey, dict[str, int]]:
    return {
        (part.tenant, part.project, part.agent, part.tool): {
            k: getattr(part, k) for k in KINDS if getattr(part, k)
        }
        for part in parts
        if isinstance(part, TrustPart)
    }


def checkpoint_of(fold: PartitionFold) -> TrustCheckpoint:
    checkpoint = fold.checkpoint()
    assert checkpoint is not None
    return checkpoint


@given(SEEDS)
def test_apply_whole_history_counts_what_it_says(seed: int) -> None:
    history = history_of(seed)
    fold = folded(history.raws())
    checkpoint = checkpoint_of(fold)
    assert counts(fold.parts) == {key: dict(found) for key, found in history.expected.items()}
    assert facts(fold.parts) == history.facts
    assert checkpoint.evidence == sum(part.evidence for part in fold.parts)
    assert (checkpoint.unreadable, checkpoint.term) == (history.unreadable, history.term)
    assert checkpoint.through_offset == len(history.records) - 1


@given(SEEDS, st.data())
def test_resume_after_any_torn_round_gives_the_same(seed: int, data: st.DataObject) -> None:
    raws = history_of(seed).raws()
    whole = folded(raws)
    closed = data.draw(st.integers(1, len(raws)), "records up to the checkpoint")
    torn = data.draw(st.integers(closed, len(raws)), "records of the torn round")
    checkpoint = checkpoint_of(folded(raws[:closed]))
    old = {part.key: part for part in folded(raws[:closed]).parts}
    ahead = [part for part in folded(raws[:torn]).parts if data.draw(st.booleans())]
    stored = {**old, **{part.key: part for part in ahead}}

    again = PartitionFold(0, TOPIC, checkpoint, stored.values())
    assert again.needs_through < len(raws)
    folded(raws[again.start :], again)

    assert again.parts == whole.parts
    assert (again.checkpoint() or checkpoint) == whole.checkpoint()


@given(SEEDS)
def test_resume_begins_where_the_oldest_open_call_was_proposed(seed: int) -> None:
    history = History(0, random.Random(seed))
    history.claim()
    old = history.propose()
    history.live(40)
    checkpoint = checkpoint_of(folded(history.raws()))
    assert checkpoint.resume_offset == 1
    history.end(old, "successes")
    assert checkpoint_of(folded(history.raws())).resume_offset > 1


def test_resume_claim_changed_meanwhile_admits_the_new_writer_only() -> None:
    history = History(0, random.Random(1))
    history.claim()
    call = history.propose()
    first = history.term
    history.claim()
    checkpoint = checkpoint_of(folded(history.raws()))
    assert (checkpoint.resume_term, checkpoint.term) == (first, history.term)
    history.end(call, "failures", term=first)
    history.end(call, "successes")
    fold = folded(history.raws(checkpoint.resume_offset), PartitionFold(0, TOPIC, checkpoint))
    assert counts(fold.parts) == {call.part: {"successes": 1}}


def test_take_weighed_gives_what_became_of_holds_once_and_only_what_is_new() -> None:
    history = History(0, random.Random(12))
    history.claim()
    for result in ("released", "sampled", "asked", "sampled"):
        call = history.propose()
        outcome = AdaptiveOutcome(result, "", 0.95, 0.9, 0.0, 0.05, "00", 0.5)
        history.add(call.key, verdict(call, adaptive=outcome_to_text(outcome)))
        if result == "sampled":
            history.add(call.key, decision_on(call, "approve", True))
    raws = history.raws()
    fold = folded(raws)

    found = fold.take_weighed()
    assert (found.verdicts, found.samples) == (
        {"released": 1, "sampled": 2, "asked": 1},
        {"approval": 2},
    )
    # What a sampled call does when it runs is no word of a person on it.
    history.end(call, "failures")
    failed = folded(history.raws())
    assert {fact.kind for part in failed.parts if isinstance(part, ClassPart) for fact in part.facts} == {
        "approval",
        "failure",
    }
    assert failed.take_weighed().samples == {"approval": 2}
    assert fold.take_weighed() == Weighed(Counter(), Counter())
    checkpoint = checkpoint_of(folded(raws[:6]))
    again = PartitionFold(0, TOPIC, checkpoint, folded(raws[:6]).parts)
    folded(raws[again.start :], again)
    assert (
        again.take_weighed().verdicts
        == folded(raws).take_weighed().verdicts - folded(raws[:6]).take_weighed().verdicts
    )


def test_apply_whatever_people_say_of_a_planted_call_counts_for_nothing() -> None:
    history = History(0, random.Random(13))
    history.claim()
    sampled = outcome_to_text(AdaptiveOutcome("sampled", "", 0.95, 0.9, 0.0, 0.05, "00", 0.5))
    for number, decision in enumerate(("approve", "edit", "reject", "respond")):
        call = OpenCall(PLACE, execution_key(*PLACE[:2], f"planted-{number}"), "c", trust_class="risk=reads")
        probe = probe_to_text(Probe("olga", "bad"))
        history.add(call.key, proposal(call).model_copy(update={"probe": probe}))
        history.add(call.key, verdict(call, adaptive=sampled))
        history.add(call.key, decision_on(call, decision, True))
        history.end(call, "denied")
    fold = folded(history.raws())

    assert fold.parts == []
    assert fold.take_weighed() == Weighed(Counter(), Counter())
    assert checkpoint_of(fold).resume_offset == len(history.records)


def test_apply_contrary_fact_about_a_call_in_no_class_counts_against_its_values() -> None:
    history = History(0, random.Random(17))
    history.claim()
    past = history_to_text(CallHistory(values=("aa",)))
    for number, (decision, values) in enumerate((("reject", past), ("approve", past), ("reject", None))):
        call = OpenCall(PLACE, execution_key(*PLACE[:2], f"none-{number}"), "c", trust_class="")
        history.add(call.key, proposal(call))
        history.add(call.key, verdict(call, history=values))
        history.add(call.key, decision_on(call, decision, True))
        history.end(call, "denied")

    (part,) = [part for part in folded(history.raws()).parts if isinstance(part, ClassPart)]

    assert (part.trust_class, [fact.values for fact in part.facts]) == (UNCLASSED, [("aa",)])
    assert part.facts[0].kind == "rejection"


def test_apply_record_delivered_again_changes_nothing() -> None:
    raws = history_of(3).raws()
    fold = folded(raws)
    before = fold.parts, fold.checkpoint()
    folded(raws, fold)
    assert (fold.parts, fold.checkpoint()) == before


def test_apply_other_first_record_is_position_lost() -> None:
    raws = history_of(4).raws()
    with pytest.raises(PositionLost, match="requested from offset 0, but delivered from 1"):
        folded(raws[1:])


def test_apply_other_record_where_it_was_counted_is_log_changed() -> None:
    history, other = history_of(5), history_of(6)
    checkpoint = checkpoint_of(folded(history.raws(0, 50)))
    fold = PartitionFold(0, TOPIC, checkpoint)
    other.records[49] = other.records[49]._replace(headers=(("ce_id", b"another"),))
    with pytest.raises(LogChanged, match="recreate the trust topic"):
        folded(other.raws(fold.start), fold)


def test_init_checkpoint_of_another_topic_is_log_changed() -> None:
    checkpoint = checkpoint_of(folded(history_of(7).raws()))
    with pytest.raises(LogChanged, match="recreate the trust topic"):
        PartitionFold(0, "recreated", checkpoint)


def test_advice_on_a_log_that_is_shorter_than_its_counts_is_to_leave_them() -> None:
    """By them deciders know what is missing."""
    with pytest.raises(
        LogChanged, match=r"shorter\. Restore it from a backup, and leave the trust topic"
    ) as refused:
        _check_ends({0: 1, 1: 5}, {0: 2, 1: 5})
    assert "recreate" not in str(refused.value)


def test_apply_part_overwritten_by_an_older_one_is_not_whole_and_publishes_nothing() -> None:
    raws = history_of(8).raws()
    early, late = folded(raws[:60]), folded(raws[:150])
    stale = {part.key: part for part in late.parts} | {early.parts[0].key: early.parts[0]}
    assert early.parts[0] not in late.parts
    fold = PartitionFold(0, TOPIC, checkpoint_of(late), stale.values())
    with pytest.raises(PartsNotWhole):
        folded(raws[fold.start :], fold)
    assert (fold.take_changes(), fold.checkpoint()) == ([], None)


def test_take_changes_gives_each_changed_part_once() -> None:
    history = History(0, random.Random(9))
    history.claim()
    call = history.propose()
    history.end(call, "successes")
    fold = folded(history.raws())
    assert counts(fold.take_changes()) == {call.part: {"successes": 1}}
    assert fold.take_changes() == []


def test_apply_vote_that_does_not_resolve_and_word_on_a_call_in_doubt_are_no_evidence() -> None:
    history = History(0, random.Random(10))
    history.claim()
    call = history.propose()
    history.decide(call, "approve", resolves=False)
    history.doubt(call)
    history.end(call, "failures")
    assert counts(folded(history.raws()).parts) == {call.part: {"unknowns": 1, "failures": 1}}


def test_apply_fact_about_a_call_that_ended_is_no_evidence() -> None:
    history = History(0, random.Random(11))
    history.claim()
    call = history.propose()
    history.end(call, "cancelled")
    history.end(call, "successes")
    assert folded(history.raws()).parts == []


def test_identity_is_the_event_id_or_the_digest_of_the_value() -> None:
    record = RawRecord(0, 0, 0, b"k", b"v", (("ce_id", b"e1"),))
    assert identity(record) == "e1"
    unreadable = record._replace(headers=(("ce_id", b"\xff"),))
    assert identity(unreadable) == identity(record._replace(headers=()))
    assert identity(unreadable) != identity(unreadable._replace(value=b"w"))
