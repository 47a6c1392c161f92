"""The score: little evidence is little trust, contrary facts take it back, and no order of reading changes it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from schemas.topics import DAY_MS
from schemas.trust import ClassFact, FactKind
from schemas.trust_score import (
    HALF_LIFE_DAYS,
    KEPT_MAX,
    KEPT_NAMES_MAX_BYTES,
    WINDOW_DAYS,
    Placed,
    kept,
    lower_bound,
    posterior,
    weight,
)

NOW = 20_000 * DAY_MS + 5_000
KINDS: tuple[FactKind, ...] = ("approval", "edit", "rejection", "correction", "revocation", "failure")


def fact(offset: int, kind: FactKind = "approval", at_ms: int = NOW, by: str = "rita") -> ClassFact:
    return ClassFact(offset=offset, at_ms=at_ms, kind=kind, by=(by,), requester="bot")


def times(count: int, kind: FactKind) -> list[FactKind]:
    return [kind] * count


def facts(*kinds: FactKind, partition: int = 0, at_ms: int = NOW) -> list[Placed]:
    return [Placed(partition, fact(offset, kind, at_ms)) for offset, kind in enumerate(kinds)]


@pytest.mark.parametrize(("raising", "lowering"), [(0, 0), (16, 0), (40, 2), (3.5, 0.5), (5000, 0)])
def test_bound_is_the_lower_credible_bound_of_the_posterior(raising: float, lowering: float) -> None:
    expected = float(beta(1 + raising, 1 + lowering).ppf(0.05))

    assert lower_bound(raising, lowering) == pytest.approx(expected, abs=2e-6)
    assert lower_bound(raising, lowering) <= expected


def test_no_evidence_is_nearly_no_trust() -> None:
    assert posterior([], NOW) == (0.05, 0.0, 0.0)


def test_edits_alone_never_reach_a_half() -> None:
    found = posterior(facts(*times(120, "edit")), NOW)

    assert (found.raising, found.lowering) == (60.0, 60.0)
    assert found.lower_bound < 0.5


def test_failure_lowers_and_is_no_new_beginning() -> None:
    before = posterior(facts(*times(40, "approval")), NOW)
    after = posterior(facts(*times(40, "approval"), "failure"), NOW)

    assert (after.raising, after.lowering) == (40.0, 1.0)
    assert after.lower_bound < before.lower_bound


@pytest.mark.parametrize("kind", ["rejection", "correction", "revocation"])
def test_after_a_contrary_fact_trust_is_earned_anew(kind: FactKind) -> None:
    dropped = posterior(facts(*times(100, "approval"), kind), NOW)
    again = posterior(facts(*times(100, "approval"), kind, *times(30, "approval")), NOW)

    assert (dropped.raising, dropped.lowering) == (0.0, 1.0)
    assert (again.raising, again.lowering) == (30.0, 1.0)


def test_contrary_fact_of_another_partition_counts_from_its_time_on() -> None:
    contrary = Placed(1, fact(0, "rejection", NOW + 10))
    before = [Placed(0, fact(offset, at_ms=NOW + offset)) for offset in range(20)]

    found = posterior([*before, contrary], NOW)

    # In the same millisecond the order is unknown, so the approval does not count.
    assert found.raising == 9.0


def test_weight_halves_and_ends() -> None:
    assert weight(NOW, NOW) == weight(NOW - 5_000, NOW) == 1.0
    assert weight(NOW - HALF_LIFE_DAYS * DAY_MS, NOW) == 0.5
    assert weight(NOW - WINDOW_DAYS * DAY_MS, NOW) == 0.0
    assert weight(NOW + 3 * DAY_MS, NOW) == 1.0


@pytest.mark.parametrize(("now_ms", "at_ms"), [(0, 0), (-5, 10), (2**53, 0), (0, 2**53)])
def test_weight_of_any_times_is_between_none_and_whole(now_ms: int, at_ms: int) -> None:
    assert 0.0 <= weight(at_ms, now_ms) <= 1.0


PLACED = st.lists(
    st.builds(
        lambda partition, offset, kind, day: Placed(partition, fact(offset, kind, NOW - day * DAY_MS)),
        st.integers(0, 3),
        st.integers(0, 500),
        st.sampled_from(KINDS),
        st.integers(0, 200),
    ),
    max_size=60,
    # A record of the log has one place, and is at most one fact about a class.
    unique_by=lambda one: (one.partition, one.fact.offset),
)


@given(PLACED, st.integers(0, 2**32))
def test_score_does_not_depend_on_the_order_of_the_facts(found: list[Placed], seed: int) -> None:
    shuffled = found[:]
    random.Random(seed).shuffle(shuffled)

    assert posterior(shuffled, NOW) == posterior(found, NOW)


@given(PLACED, st.sampled_from(["rejection", "correction", "revocation", "failure"]))
def test_no_contrary_fact_ever_raises_the_score(found: list[Placed], kind: FactKind) -> None:
    more = [*found, Placed(0, fact(10**6, kind))]

    assert posterior(more, NOW).lower_bound <= posterior(found, NOW).lower_bound


@given(PLACED)
def test_discounting_never_raises_the_score(found: list[Placed]) -> None:
    assert (
        posterior(found, NOW, lambda one: one.offset % 2 == 0).lower_bound
        <= posterior(found, NOW).lower_bound
    )


def test_kept_facts_are_the_newest_of_each_direction_in_order() -> None:
    many = [fact(offset, "approval") for offset in range(1, 300)]
    found = kept([fact(0, "rejection"), *many, fact(300, "failure")])

    assert len(found) == KEPT_MAX + 2
    assert [found[0].kind, found[-1].kind] == ["rejection", "failure"]
    assert [one.offset for one in found] == sorted(one.offset for one in found)
    assert found[1].offset == 299 - KEPT_MAX + 1


def test_kept_facts_have_accounts_whose_names_fit_into_a_record() -> None:
    many = tuple("\U0001f600" * 255 + chr(0x1F600 + number) for number in range(50))
    kinds: tuple[FactKind, ...] = ("approval", "rejection")
    found = [
        ClassFact(offset=number, at_ms=0, kind=kinds[number % 2], by=many, requester="bot")
        for number in range(200)
    ]

    facts = kept(found)

    assert [fact.offset for fact in facts] == [198, 199]
    assert sum(len(name.encode()) for fact in facts for name in fact.by) < 2 * KEPT_NAMES_MAX_BYTES
    # Of one fact that is larger, too, the part has this one.
    larger = ClassFact(offset=200, at_ms=0, kind="approval", by=many * 2, requester="bot")
    assert [fact.offset for fact in kept([*facts, larger])] == [199, 200]
