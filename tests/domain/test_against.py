"""Contrary facts that a part keeps no more still count against the values of their calls."""

import random
from typing import Any

import pytest

from schemas.call_history import CallHistory
from schemas.principals import People
from schemas.record import RawRecord
from schemas.topics import DAY_MS
from schemas.trust import ANY, ClassPart, read_trust, trust_record
from schemas.trust_score import AGAINST_MAX, KEPT_MAX, WINDOW_DAYS, weight
from services.domain.policy.identifying import MAX_NUMBERS, MAX_VALUES, MAX_WITHIN
from services.domain.trust.approved import Approved, approved_by
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import Evidence, combine, count_in_class
from tests.domain.counting import ENOUGH_OF_NEW, answer, history, is_released, learning, propose
from tests.domain.world import START_MS

NOW = START_MS
# Different numbers in one list: such a call is in no class.
IN_NO_CLASS = {"tags": [1, 20, 300, 4_000, 50_000]}


def told(
    part: ClassPart | None,
    *digests: str,
    kind: Any = "rejection",
    at_ms: int = NOW,
    trust_class: str = "c",
    numbers: tuple[tuple[str, float, float], ...] = (),
) -> ClassPart:
    """The part with one more fact."""
    offset = part.through_offset + 1 if part else 0
    place = ("acme", "main", "bot", "pay", None, at_ms, 0, offset, f"e{offset}", 3, "topic-id")
    values = CallHistory(values=digests, numbers=numbers)
    return count_in_class(part, Evidence(*place, trust_class, kind, ("rita",), "bot", values))


def displaced(part: ClassPart | None, at_ms: int = NOW, times: int = KEPT_MAX) -> ClassPart:
    """The part after so many rejections of one other value that it keeps no earlier one."""
    for _ in range(times):
        part = told(part, "junk", at_ms=at_ms)
    assert part is not None
    return part


def approved(*parts: ClassPart | None, now_ms: int = NOW) -> Approved:
    known = KnownTrust(combine(()), (), {}, tuple(part for part in parts if part))
    return approved_by(known, now_ms, People().of("acme"))


def filled(count: int, part: ClassPart | None = None, at_ms: int = NOW) -> ClassPart:
    """The part after rejections of so many different values, and then of enough others."""
    for first in range(0, count, MAX_VALUES):
        part = told(part, *(f"{n:032x}" for n in range(first, min(count, first + MAX_VALUES))), at_ms=at_ms)
    return displaced(part, at_ms)


def test_rejected_value_is_not_released_after_many_rejections_of_others_in_no_class() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": "bob", "amount": 50}, ENOUGH_OF_NEW)
    answer(world, "approve", {"to": "mallory", "amount": 50})
    answer(world, "reject", {"to": "mallory", "amount": 50} | IN_NO_CLASS, 5)
    for number in range(KEPT_MAX):
        answer(world, "reject", {"to": f"junk{number}"} | IN_NO_CLASS)

    assert is_released(world, {"to": "bob", "amount": 50})
    assert history(propose(world, {"to": "mallory", "amount": 50})).opposed == ("to",)
    assert not is_released(world, {"to": "mallory", "amount": 50})


def test_value_that_is_kept_no_more_needs_as_many_approvals_as_there_were_facts_against_it() -> None:
    against = displaced(told(told(None, "evil"), "evil"))
    once = told(None, "evil", kind="approval", trust_class="d")
    twice = told(once, "evil", kind="approval", trust_class="d")
    more = told(twice, "evil", kind="approval", trust_class="d")

    assert not [fact for fact in against.facts if "evil" in fact.values]
    assert approved(against, once).opposes("evil")
    assert (approved(against, twice).has("evil"), approved(against, twice).opposes("evil")) == (False, False)
    assert approved(against, more).has("evil")


def test_facts_are_worth_as_much_against_a_value_as_if_all_were_kept() -> None:
    chance = random.Random(7)
    part, all_of = None, list[tuple[str, int]]()
    for number in range(4 * KEPT_MAX):
        value, at_ms = f"v{chance.randrange(40)}", NOW + number * DAY_MS // 4
        part = told(part, value, at_ms=at_ms)
        all_of.append((value, at_ms))
    now_ms = all_of[-1][1] + 20 * DAY_MS
    worth = approved(part, now_ms=now_ms).worth

    for value in worth:
        expected = sum(weight(at_ms, now_ms) for name, at_ms in all_of if name == value)
        assert -worth[value] == pytest.approx(expected, abs=2e-6)


def test_value_is_forgotten_after_the_window() -> None:
    part = displaced(told(None, "evil"))
    later = NOW + WINDOW_DAYS * DAY_MS

    assert [value for value, _, _ in part.against] == ["evil"]
    assert approved(part, now_ms=later - DAY_MS).opposes("evil")
    assert not approved(part, now_ms=later).opposes("evil")
    assert told(part, "other", at_ms=later - DAY_MS).against[0][0] == "evil"
    assert told(part, "other", at_ms=later).against == ()


def test_every_value_is_opposed_while_facts_against_more_values_than_are_kept_count() -> None:
    friend = told(told(None, "friend", kind="approval", trust_class="d"), kind="edit", trust_class="d")
    full, more = filled(AGAINST_MAX), filled(AGAINST_MAX + 1)
    later = NOW + (WINDOW_DAYS - 1) * DAY_MS
    known = told(None, "friend", kind="approval", trust_class="d", at_ms=later)

    assert approved(full, friend).has("friend")
    assert full.against[0][0] != ANY
    assert approved(more, friend).opposes("friend")
    assert (more.against[0], len(more.against)) == ((ANY, 1.0, NOW), AGAINST_MAX + 1)
    assert approved(more, known, now_ms=later).opposes("friend")
    assert approved(more, known, now_ms=later + DAY_MS).has("friend")


def test_oldest_values_are_the_ones_that_are_kept_no_more() -> None:
    later = NOW + DAY_MS
    part = filled(AGAINST_MAX, displaced(told(None, "evil")), at_ms=later)

    assert part.against[0] == (ANY, KEPT_MAX + 1.0, NOW)
    assert {at_ms for _, _, at_ms in part.against[1:]} == {later}
    assert len(part.against) == AGAINST_MAX + 1


def test_failures_and_approvals_that_are_kept_no_more_are_against_nothing() -> None:
    part = told(None, "friend", kind="approval")
    for _ in range(2 * KEPT_MAX):
        part = told(told(part, "friend", kind="failure"), "friend", kind="approval")

    assert part.counted > len(part.facts)
    assert part.against == ()
    assert approved(part).has("friend")


def test_fullest_part_survives_the_topic_and_fits_into_a_record() -> None:
    numbers = tuple((f"{n:02}" + "x" * 94, 1.5, 2.5) for n in range(MAX_NUMBERS))
    part: ClassPart | None = None
    for number in range(4 * KEPT_MAX):
        at_ms = NOW + number * DAY_MS // 5
        digests = tuple(f"{number:016x}{n:016x}" for n in range(MAX_VALUES))
        digests += tuple(f"{number:08x}{n:08x}" for n in range(MAX_WITHIN))
        part = told(part, *digests, at_ms=at_ms, kind="approval", numbers=numbers)
        part = told(part, *digests, at_ms=at_ms)

    assert part is not None
    assert len(part.against) == AGAINST_MAX + 1
    out = trust_record(part)
    assert len(out.value) < 900_000
    assert read_trust(RawRecord(0, 7, 0, out.key, out.value, out.headers)) == part
